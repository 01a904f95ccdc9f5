package twinlake.reading;

/** A file of the lake is not what was written there. Python knows it by the mark, and says what can be done. */
final class Damaged extends RuntimeException {
  private static final long serialVersionUID = 1L;

  Damaged(String file, String found, Throwable cause) {
    super("[DAMAGED_FILE] " + file + ": " + found, cause);
  }

  /** What was said of it before. */
  Damaged(String said) {
    super(said);
  }
}
