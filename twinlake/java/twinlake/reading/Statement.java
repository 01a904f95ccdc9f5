package twinlake.reading;

import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.hive.service.cli.OperationState;
import org.apache.hive.service.cli.session.HiveSession;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.hive.thriftserver.HiveThriftServer2;
import org.apache.spark.sql.hive.thriftserver.SparkExecuteStatementOperation;
import org.apache.spark.sql.internal.SQLConf;

/**
 * A statement over JDBC, as Spark runs it, but with errors as elsewhere: what happened, why, what to do.
 *
 * <p>It is computed by a thread of its own also for a client that waits in its call (Python's do): so it is seen when
 * that client leaves, and the statement ends.
 */
final class Statement extends SparkExecuteStatementOperation {
  /** Standard SQL's state of what somebody, or a limit, has ended. */
  static final String CANCELLED = "57014";
  private static final long LOOK_MS = 1_000;

  private final SparkSession session;
  private final boolean isWaitedFor;
  private final long serversLimitS;
  private final String text;
  private final String user;
  private final long startedMs = System.currentTimeMillis();

  Statement(SparkSession session, HiveSession parent, String text, Map<String, String> settings, boolean isAsync, long limitS) {
    super(session, parent, text, settings, true, limitS);
    this.session = session;
    isWaitedFor = !isAsync;
    this.text = text;
    user = Sessions.user(parent);
    long most = (long) ((org.apache.spark.sql.classic.SparkSession) session).sessionState().conf()
        .getConf(SQLConf.THRIFTSERVER_QUERY_TIMEOUT());
    serversLimitS = most > 0 && (limitS <= 0 || most < limitS) ? most : 0;
  }

  @Override
  public void runInternal() {
    RunningStatements.begins(this);
    try {
      super.runInternal();
      if (isWaitedFor) {
        await();
      }
    } catch (Exception failed) { // Scala knows no checked exceptions
      throw BoundedParser.<RuntimeException>unchecked(
          failed instanceof HiveSQLException hives ? ReportedError.of(hives, session) : failed);
    }
  }

  private void await() throws HiveSQLException {
    while (true) {
      try {
        getBackgroundHandle().get(LOOK_MS, TimeUnit.MILLISECONDS);
        break;
      } catch (TimeoutException running) {
        if (Clients.hasLeft()) {
          cancel();
        }
      } catch (CancellationException | ExecutionException ended) {
        break; // its state and its exception say why
      } catch (InterruptedException ended) {
        cancel();
        Thread.currentThread().interrupt();
        break;
      }
    }
    OperationState state = getStatus().getState();
    if (operationException != null) {
      throw operationException;
    }
    if (state != OperationState.FINISHED) {
      throw new ReportedError("the query was stopped", "it is " + state, "ask again", "HY008");
    }
  }

  @Override
  protected void setOperationException(HiveSQLException failed) {
    super.setOperationException(ReportedError.of(failed, session));
  }

  @Override
  public void close() {
    RunningStatements.ended(this);
    super.close();
  }

  /** A driver says itself that its own limit has passed; of the server's it knows nothing. */
  @Override
  public synchronized void timeoutCancel() {
    if (serversLimitS == 0 || getStatus().getState().isTerminal()) {
      super.timeoutCancel();
      return;
    }
    end(new ReportedError("the query was stopped", "it ran longer than " + serversLimitS + " s",
        "ask for less, or set jdbc_seconds in [limits] of twinlake.toml", CANCELLED));
  }

  /** Its client gets this error; false where it has ended already. */
  synchronized boolean end(ReportedError why) {
    if (getStatus().getState().isTerminal()) {
      return false;
    }
    super.setOperationException(why);
    try {
      setState(OperationState.ERROR);
    } catch (HiveSQLException ended) {
      return false;
    }
    cleanup();
    HiveThriftServer2.eventManager().onStatementTimeout(statementId()); // as JdbcOutcomes counts what is stopped
    return true;
  }

  boolean isComputed() {
    return !getStatus().getState().isTerminal();
  }

  String user() {
    return user;
  }

  String text() {
    return text;
  }

  long startedMs() {
    return startedMs;
  }
}
