package twinlake.reading;

/**
 * A name pattern of DatabaseMetaData: {@code %} is any text, {@code _} any character, {@code \} takes the next
 * character as it is; null and the empty text are every name. Hive's {@code *} is as {@code %}.
 *
 * <p>Never a regular expression, as Spark makes of it: the time of one may grow exponentially with the name.
 */
record Pattern(String text) {
  private static final String ANY = "%*";
  private static final char ONE = '_';
  private static final char ESCAPE = '\\';

  static Pattern of(String text) {
    return new Pattern(text == null || text.isEmpty() ? "%" : text);
  }

  boolean isEverything() {
    return text.chars().allMatch(one -> ANY.indexOf(one) >= 0);
  }

  /** Letters match whatever their case, as names do. */
  boolean fits(String name) {
    int at = 0;
    int place = 0;
    int star = -1; // where to go on when the characters behind the last % do not fit
    int starPlace = 0;
    while (place < name.length()) {
      if (at < text.length() && ANY.indexOf(text.charAt(at)) >= 0) {
        star = ++at;
        starPlace = place;
      } else if (at < text.length() && fitsOne(at, name.charAt(place))) {
        at += isEscape(at) ? 2 : 1;
        place++;
      } else if (star >= 0) {
        at = star;
        place = ++starPlace;
      } else {
        return false;
      }
    }
    while (at < text.length() && ANY.indexOf(text.charAt(at)) >= 0) {
      at++;
    }
    return at == text.length();
  }

  private boolean fitsOne(int at, char letter) {
    if (isEscape(at)) {
      return same(text.charAt(at + 1), letter);
    }
    return text.charAt(at) == ONE || same(text.charAt(at), letter);
  }

  private boolean isEscape(int at) {
    return text.charAt(at) == ESCAPE && at + 1 < text.length();
  }

  private static boolean same(char one, char other) {
    return Character.toLowerCase(one) == Character.toLowerCase(other);
  }
}
