package twinlake.reading;

import java.util.List;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSession;

/** Statements that have to be refused, asked as a reader would before any reader can: else the server does not open. */
public final class Canaries {
  static final List<String> REFUSED = List.of(
      "CREATE VIEW canary AS SELECT 1",
      "CREATE GLOBAL TEMPORARY VIEW canary AS SELECT 1",
      "CREATE TABLE canary (a INT) USING parquet",
      "CACHE TABLE canary AS SELECT 1",
      "INSERT OVERWRITE DIRECTORY '/canary' USING csv SELECT 1",
      "EXECUTE IMMEDIATE 'CREATE VIEW canary AS SELECT 1'",
      "SELECT TRANSFORM(1) USING 'true' AS x",
      "ADD JAR '/canary.jar'",
      "SELECT * FROM text.`/canary`",
      "SELECT (SELECT max(value) FROM IDENTIFIER('text.`/canary`'))",
      "SELECT * FROM " + LiveTable.FUNCTION + "('/canary')",
      "SET spark.sql.runSQLOnFiles = true",
      "SELECT java_method('java.lang.System', 'lineSeparator')",
      "SELECT from_avro(X'00', 'x', map('avroSchemaUrl', 'file:/canary'))",
      "SELECT " + "(".repeat(1_000) + "1" + ")".repeat(1_000),
      "SELECT array_repeat('x', 1500000000)",
      "SELECT 1 LIMIT length(repeat('x', 1500000000))");

  private Canaries() {}

  static void release(SparkSession ownerSession) {
    ownerSession.sql("SELECT 1"); // Delta changes settings of a session with its first statement, here as in theirs
    try {
      OneRelease.forget();
      SparkSession readers = DefaultSchema.begin(ownerSession, "");
      readers.sql("SELECT 1"); // twice, else all that follows would be refused, too
      readers.sql("SELECT 1");
      if (!OneRelease.hasAnalysed()) {
        throw new NotTested("a query is not seen as one, and would mix releases");
      }
      Functions.check(readers);
      REFUSED.forEach(statement -> checkRefused(ownerSession.newSession(), statement));
      SparkSession other = ownerSession.newSession();
      other.conf().set("spark.sql.variable.substitute", "true");
      checkRefused(other, "SELECT 1");
    } finally {
      FairSlots.end(ownerSession.sparkContext());
    }
  }

  public static void checkRefused(SparkSession readers, String statement) {
    checkRefused(statement, () -> readers.sql(statement));
  }

  private static void checkRefused(String what, Runnable asked) {
    try {
      asked.run();
    } catch (RuntimeException | Error failed) {
      if (isRefusal(failed)) {
        return;
      }
      throw failed;
    } catch (Exception failed) { // Scala knows no checked exceptions
      if (isRefusal(failed)) {
        return;
      }
      throw new IllegalStateException(failed);
    }
    throw new NotTested("it did not refuse " + (what.length() > 200 ? what.substring(0, 200) + "..." : what));
  }

  private static boolean isRefusal(Throwable failed) {
    for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
      if (cause instanceof Refused
          || cause instanceof AnalysisException one && one.getCondition().startsWith("UNRESOLVED_ROUTINE")) {
        return true;
      }
    }
    return false;
  }
}
