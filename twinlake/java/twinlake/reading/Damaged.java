package twinlake.reading;

/** A file of the lake is not what was written there. Python knows it by this class, and says what can be done. */
public final class Damaged extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String file;
  private final String found;
  private final String expected;

  Damaged(String file, String found, String expected, Throwable cause) {
    super("[DAMAGED_FILE] " + file + ": " + found + (expected.isEmpty() ? "" : "; expected: " + expected), cause);
    this.file = file;
    this.found = found;
    this.expected = expected;
  }

  public String file() {
    return file;
  }

  public String found() {
    return found;
  }

  public String expected() {
    return expected;
  }
}
