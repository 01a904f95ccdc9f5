package twinlake.reading;

/** A statement that a reader may not run: what it is, why not, what to do. */
public final class Refused extends UnsupportedOperationException {
  private static final long serialVersionUID = 1L;

  Refused(String what, String why) {
    this(what, why, "SELECT, SHOW, DESCRIBE or EXPLAIN over the views");
  }

  Refused(String what, String why, String use) {
    super(what + " is refused, because " + why + ". Use " + use);
  }
}
