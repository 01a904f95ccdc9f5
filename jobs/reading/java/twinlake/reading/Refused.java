package twinlake.reading;

/** A statement that a reader may not run: what it is, why not, what to do. */
public final class Refused extends UnsupportedOperationException {
  private static final long serialVersionUID = 1L;

  Refused(String what, String why) {
    super(what + " is refused, because " + why + ". Use SELECT, SHOW, DESCRIBE or EXPLAIN over the views.");
  }
}
