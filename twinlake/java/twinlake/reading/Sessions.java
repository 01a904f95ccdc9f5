package twinlake.reading;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.hive.service.auth.TSetIpAddressProcessor;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.hive.service.cli.session.HiveSession;
import org.apache.spark.sql.SparkSession;

/** Whose the connections over JDBC are, and how those of one user end. */
public final class Sessions {
  private static final Map<HiveSession, String> USED = Collections.synchronizedMap(new WeakHashMap<>());

  private static final long HEARD_MS = 500;

  private Sessions() {}

  /** Whose password the connection has shown: a session's own name of the user ends before an @ or /. */
  static String user(HiveSession session) {
    String shown = shown();
    return shown == null ? session.getUserName() : shown;
  }

  /** Whose password the connection has shown that this thread serves; null where it serves none. */
  static String shown() {
    return TSetIpAddressProcessor.getUserName();
  }

  private static void pause() {
    try {
      Thread.sleep(HEARD_MS);
    } catch (InterruptedException ended) {
      Thread.currentThread().interrupt();
    }
  }

  static void uses(HiveSession session, SparkSession sparks) {
    USED.put(session, user(session));
    Rights.begin(sparks, user(session));
  }

  /** Statements of this user are ended with this error, and their connections closed: their next call fails. */
  public static void end(String user, String what, String why, String remedy) {
    if (RunningStatements.endOf(user, what, why, remedy) > 0) {
      pause(); // a client that asks for the state of a statement of a closed connection would not get the error
    }
    for (Map.Entry<HiveSession, String> one : Map.copyOf(USED).entrySet()) {
      if (one.getValue().equals(user)) {
        try {
          one.getKey().getSessionManager().closeSession(one.getKey().getSessionHandle());
        } catch (HiveSQLException closed) {
          // by its own client, a moment ago
        } finally {
          USED.remove(one.getKey());
        }
      }
    }
  }
}
