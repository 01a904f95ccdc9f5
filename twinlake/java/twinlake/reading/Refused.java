package twinlake.reading;

/** A statement that a reader may not run: what it is, why not, what to do. */
public final class Refused extends UnsupportedOperationException {
  private static final long serialVersionUID = 1L;
  private static final String BECAUSE = " is refused, because ";

  /** What it is, and why not. */
  final String why;

  final String remedy;

  Refused(String what, String why) {
    this(what, why, "SELECT, SHOW, DESCRIBE or EXPLAIN over the views");
  }

  Refused(String what, String why, String use) {
    this(what + BECAUSE + why, use, false);
  }

  private Refused(String why, String remedy, boolean isSentence) {
    super(why + (isSentence ? ". Do: " : ". Use ") + remedy);
    this.why = why;
    this.remedy = isSentence ? remedy : "use " + remedy;
  }

  /** With a remedy that is a sentence of its own. */
  static Refused toDo(String what, String why, String remedy) {
    return new Refused(what + BECAUSE + why, remedy, true);
  }
}
