package twinlake.reading;

/** A file of the lake is not what was written there. Python knows it by this class, and says what can be done. */
public final class Damaged extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String file;
  private final String found;

  Damaged(String file, String found, Throwable cause) {
    super("[DAMAGED_FILE] " + file + ": " + found, cause);
    this.file = file;
    this.found = found;
  }

  public String file() {
    return file;
  }

  public String found() {
    return found;
  }
}
