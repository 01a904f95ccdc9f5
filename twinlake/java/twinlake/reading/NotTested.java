package twinlake.reading;

/** Why the server does not open: what guards it is written for versions of Spark and Delta that this is not. */
final class NotTested extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  NotTested(String what) {
    super("The SQL server does not open, because its guards do not fit this Spark: " + what
        + ". Its guards were tested with Spark " + String.join(", ", Guards.SPARKS) + " and Delta "
        + String.join(", ", Guards.DELTAS) + "; install one of these (constraints.txt, twinlake/setup/jars.txt), or test "
        + "tests/reading with the new version and name it in Guards.java.");
  }
}
