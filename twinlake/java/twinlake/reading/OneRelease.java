package twinlake.reading;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.PosParameterizedQuery;
import org.apache.spark.sql.catalyst.analysis.UnresolvedExecuteImmediate;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * A query sees the views of one release, however many it names, and each table at one version: views are altered one
 * by one, so it is analysed here, and again where they were altered meanwhile; Spark takes the analysed plan as it is.
 */
public final class OneRelease {
  private static final int TRIES = 600;
  private static final long PAUSE_MS = 50;
  private static final String SESSION = org.apache.spark.sql.classic.SparkSession.class.getName();

  /** Odd while views are altered. */
  private static final AtomicLong changes = new AtomicLong();

  private static final ThreadLocal<Long> analysed = new ThreadLocal<>();
  private static volatile long serving = -1;

  /** What a statement needs is being altered for longer than it waits. */
  static final class Busy extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Busy(String why) {
      super(why);
    }
  }

  private OneRelease() {}

  /** Views are altered from now on; only the session that keeps them calls this. */
  public static void alter() {
    changes.incrementAndGet();
  }

  /** All views are those of this release. */
  public static void serve(long release) {
    serving = release;
  }

  /** Nobody alters views any more. */
  public static void altered() {
    changes.incrementAndGet();
  }

  /** The release of this thread's last statement; -1 before the first release. */
  public static long ofLastStatement() {
    return analysed.get();
  }

  /** Another number after each switch. */
  static long changes() {
    return changes.get();
  }

  /** Before a query of which {@link #hasAnalysed} tells afterwards. */
  static void forget() {
    analysed.remove();
  }

  static boolean hasAnalysed() {
    return analysed.get() != null;
  }

  /** The plan, analysed over one release; as it was parsed where that is not to be, or not possible. */
  static LogicalPlan over(SparkSession session, LogicalPlan parsed, String sql) {
    if (!isStatement()) {
      return parsed;
    }
    analysed.set(serving);
    LogicalPlan asked = parsed instanceof PosParameterizedQuery bound ? bound.child() : parsed;
    Moments.bind(session, sql, asked instanceof Command);
    if (asked instanceof Command && PastTables.isBound()) {
      throw new Refused("a command AS OF a moment", "only a query reads tables as they were");
    }
    if (asked instanceof Command || asked instanceof UnresolvedExecuteImmediate) {
      return DefaultSchema.instead(parsed); // what EXECUTE IMMEDIATE runs is a statement of its own
    }
    return seen(() -> LiveTable.atOneVersion(() -> tryToAnalyse(session, parsed)));
  }

  /** What this finds in the views of one release; it looks again where they were altered meanwhile. */
  static <T> T seen(Supplier<T> look) {
    for (int tried = 0; tried < TRIES; tried++) {
      long before = changes.get();
      if (before % 2 == 0) {
        analysed.set(serving);
        T found = look.get();
        if (changes.get() == before) {
          return found;
        }
      }
      pause();
    }
    throw new Busy("the views are being switched to another release");
  }

  /** What is wrong or refused is returned as it is: Spark says why, with the place in the text. */
  private static LogicalPlan tryToAnalyse(SparkSession session, LogicalPlan parsed) {
    var state = ((org.apache.spark.sql.classic.SparkSession) session).sessionState();
    try {
      return state.analyzer().executeAndCheck(parsed, Ending.tracker());
    } catch (Exception failed) {
      if (failed instanceof AnalysisException || failed instanceof Refused) {
        return parsed;
      }
      if (failed instanceof RuntimeException unchecked) {
        throw unchecked;
      }
      throw new IllegalStateException(failed.getMessage(), failed); // cancelled, for instance
    }
  }

  /** Not the text of a view, which is parsed while something else is analysed. */
  private static boolean isStatement() {
    return StackWalker.getInstance().walk(frames -> frames
        .map(StackWalker.StackFrame::getClassName)
        .filter(name -> name.startsWith("org.apache.spark.sql."))
        .findFirst()
        .filter(SESSION::equals)
        .isPresent());
  }

  private static void pause() {
    try {
      Thread.sleep(PAUSE_MS);
    } catch (InterruptedException ended) {
      throw cancelled(ended);
    }
  }

  static IllegalStateException cancelled(InterruptedException ended) {
    Thread.currentThread().interrupt();
    return new IllegalStateException("the statement was cancelled", ended);
  }
}
