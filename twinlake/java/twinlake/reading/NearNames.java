package twinlake.reading;

import java.util.Collection;
import java.util.Comparator;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.unsafe.types.UTF8String;

/** What somebody may have meant who named a table or schema that is not there: the nearest that they may read. */
public final class NearNames {
  private static final Pattern UNKNOWN = Pattern.compile("The table or view ((?:`[^`]+`\\.)*)`([^`]+)` cannot be found");
  private static final Pattern SCHEMA = Pattern.compile("`([^`]+)`\\.$");

  private NearNames() {}

  /** Of an error of Spark's: `schema.table`; empty where nothing is near, or it is about something else. */
  public static String of(SparkSession session, String why) {
    Matcher found = UNKNOWN.matcher(why);
    if (!found.find()) {
      return "";
    }
    Matcher before = SCHEMA.matcher(found.group(1));
    String schema = before.find() ? before.group(1) : DefaultSchema.SERVE;
    String near = nearest(found.group(2), new Listing(session).names(schema));
    return near.isEmpty() ? "" : schema + "." + near;
  }

  /** Empty where more than a third of the letters would have to be others. */
  static String nearest(String name, Collection<String> known) {
    UTF8String text = UTF8String.fromString(name.toLowerCase(Locale.ROOT));
    int most = Math.max(2, name.length() / 3);
    return known.stream().filter(one -> distance(text, one) <= most)
        .min(Comparator.<String>comparingInt(one -> distance(text, one)).thenComparing(one -> one)).orElse("");
  }

  private static int distance(UTF8String text, String other) {
    return text.levenshteinDistance(UTF8String.fromString(other.toLowerCase(Locale.ROOT)));
  }
}
