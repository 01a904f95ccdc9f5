package twinlake.reading;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.SparkSession;

/**
 * What goes wrong over JDBC, in the form of all other errors: what happened, why, and what to do.
 *
 * <p>Hive sends an error as it is printed, so it has no trace and no cause here; Spark has logged both.
 */
final class ReportedError extends HiveSQLException {
  private static final long serialVersionUID = 1L;
  private static final Pattern TOO_LARGE = Pattern.compile("bigger than (?:local )?spark.driver.maxResultSize \\(([^)]*)\\)");
  private static final Pattern PLAN = Pattern.compile(";\\n|\\nTo tolerate|\\nIf you did not qualify|\\n\\nJVM stacktrace:|\\nDriver stacktrace:");
  private static final Pattern PLACE = Pattern.compile("; line \\d+ pos \\d+");
  private static final int LONGEST = 4_000;

  /** As a task's failure has it: in a message, with a trace and without a cause. */
  private static final String OVERFLOW = StackOverflowError.class.getName();

  /** As {@code twinlake/reading/reader.py} says it over HTTP. */
  private static final String TOO_DEEP = "something is nested or repeated too deeply, by a pattern such as (a|b)* for instance";

  /** As {@code twinlake/topics/change.py} has it, of a value that a version's own type does not hold. */
  private static final String RELEASE_WIDER = "release a definition of it that is made with the newest schema";

  private ReportedError(String text, String state, int code) {
    super(text, state, code);
    setStackTrace(new StackTraceElement[0]);
  }

  ReportedError(String what, String why, String remedy, String state) {
    this(text(what, why, remedy), state, 0);
  }

  /** Of a statement in this session, whose tables are near what it may have meant. */
  static ReportedError of(HiveSQLException failed, SparkSession session) {
    return failed instanceof ReportedError reported
        ? reported : new ReportedError(words(failed, session), failed.getSQLState(), failed.getErrorCode());
  }

  @Override
  public String toString() {
    return getMessage();
  }

  private static String text(String what, String why, String remedy) {
    return what + "\nwhy: " + why + "\ndo:  " + remedy;
  }

  private static String words(HiveSQLException failed, SparkSession session) {
    for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
      String why = String.valueOf(cause.getMessage());
      Matcher large = TOO_LARGE.matcher(why);
      if (cause instanceof Refused refused) {
        return text("the query was refused", refused.why, refused.remedy);
      }
      if (cause instanceof OneRelease.Busy) {
        return text("the query was not started", why, "ask again in a moment");
      }
      if (large.find()) {
        return text("the query was stopped", "its result has more than " + large.group(1), "ask for fewer rows or columns");
      }
      if (why.contains(OVERFLOW) || cause instanceof StackOverflowError) {
        return text("the query failed", TOO_DEEP, "take shorter values, or a simpler pattern");
      }
      if (cause instanceof Damaged || isUnreadableFile(cause)) {
        return text("the query failed", shortened(why), "see `twinlake status`, which names what is damaged");
      }
    }
    String why = shortened(sparks(failed).getMessage());
    if (why.contains(RELEASE_WIDER)) {
      return text("the query failed", why.split(": " + RELEASE_WIDER, 2)[0], "leave out its column, or " + RELEASE_WIDER);
    }
    if (!why.contains("TABLE_OR_VIEW_NOT_FOUND")) {
      return text("the query failed", why, "correct the statement");
    }
    String near = NearNames.of(session, why);
    return text("the query failed", why, (near.isEmpty() ? "" : "did you mean " + near + "? ") + "see what there is with SHOW VIEWS IN serve");
  }

  /** SQL's raise_error throws a SparkRuntimeException, with whatever condition a reader wants. */
  private static boolean isUnreadableFile(Throwable cause) {
    return cause instanceof SparkThrowable named && !(cause instanceof SparkRuntimeException)
        && String.valueOf(named.getCondition()).startsWith("FAILED_READ_FILE");
  }

  /** The innermost that Spark has a name for: others say where it came by. */
  private static Throwable sparks(Throwable failed) {
    Throwable found = failed;
    for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
      if (cause instanceof SparkThrowable named && named.getCondition() != null) {
        found = cause;
      }
    }
    return found;
  }

  /** Without Spark's plans and traces. */
  private static String shortened(String text) {
    String first = PLAN.split(String.valueOf(text), 2)[0].strip().replaceFirst("^Error running query: ", "")
        .replaceAll("\\bas_of_[0-9a-f]{16}\\b", DefaultSchema.SERVE); // the name that was asked for
    Matcher place = PLACE.matcher(String.valueOf(text));
    if (place.find() && !first.contains(place.group())) {
      first += place.group();
    }
    return first.length() > LONGEST ? first.substring(0, LONGEST) + "..." : first;
  }
}
