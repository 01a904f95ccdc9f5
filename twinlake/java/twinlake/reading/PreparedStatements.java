package twinlake.reading;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.TaskKilledException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedExecuteImmediate;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DatetimeType;
import scala.MatchError;

/**
 * Statements over few rows are computed in the thread that asks, and of one that is asked again the plan is kept: to
 * analyse and plan it costs more than its rows. Whatever is not known to be the same is analysed again.
 *
 * <p>A plan is kept for who sees everything, whose statements nothing is put into: who loses a right is not one of them
 * from then on. It is used while the views that it reads are, entry by entry of the catalog, those that it was made of;
 * watermarks and files are those of each run. Sessions have the server's settings here, each statement a new one.
 */
public final class PreparedStatements {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int LONGEST = 10_000;
  private static final int MOST_KNOWN = 500;
  /** A plan is some hundred kilobytes, and there are as many of a statement as are computed at once. */
  private static final int MOST_KEPT = 64;
  private static final long LEFT_NS = 60_000_000_000L;

  private static final Map<Asked, Known> KNOWN = new LinkedHashMap<>(16, 0.75f, true);
  private static int kept = 0;

  /** `constants` are the times in it: a DATE 'today' is one as soon as it is parsed. */
  private record Asked(String sql, int limit, List<Object> constants) {}

  /** What is known of a statement: since when tasks compute it, or plans that nobody runs now. */
  private static final class Known {
    final Deque<PreparedStatement> plans = new ArrayDeque<>();
    boolean isAskedAgain;
    boolean isLeft;
    long leftAt;
    long changes;
  }

  private PreparedStatements() {}

  /**
   * At most one row more than `limit`. Null where tasks are to compute it, or to say what is wrong with it: a file that
   * is damaged, a release that was retired since, a value.
   *
   * @return the length of a JSON head in four bytes, the head (kept, columns, views), and an Arrow stream
   */
  public static byte[] answer(SparkSession owner, String user, String sql, int limit) throws Exception {
    LogicalPlan parsed = sql.length() > LONGEST || !Rights.seesEverything(user) ? null : parsed(sql);
    if (parsed == null) {
      return null;
    }
    Asked asked = new Asked(sql, limit, times(parsed));
    if (isLeft(asked)) {
      return null;
    }
    PreparedStatement statement = taken(asked);
    boolean isKept = statement != null && OneRelease.seen(statement::holds);
    if (!isKept) {
      statement = made(asked, owner, user, parsed);
    }
    if (statement == null) {
      return null;
    }
    ObjectNode head = JSON.createObjectNode().put("kept", isKept);
    try {
      byte[] rows = statement.run(head);
      if (rows == null) {
        leave(asked);
        return null;
      }
      giveBack(asked, statement);
      return LookUps.answer(head, rows);
    } catch (PreparedScan.TooLarge large) {
      leave(asked);
      return null;
    } catch (Exception failed) { // tasks say it with the file, or the place in the statement
      refuseCancelled(failed);
      return null;
    }
  }

  /** Null for a command, and for a text whose error comes when it is run. */
  private static LogicalPlan parsed(String sql) {
    try {
      LogicalPlan parsed = new BoundedParser().parsePlan(sql);
      return parsed instanceof Command || parsed instanceof UnresolvedExecuteImmediate ? null : parsed;
    } catch (Exception wrong) { // of the parser, which throws what Java cannot name
      refuseCancelled(wrong);
      return null;
    }
  }

  private static List<Object> times(LogicalPlan parsed) {
    List<Object> found = new ArrayList<>();
    Trees.walk(parsed, Integer.MAX_VALUE, node -> {
      if (node instanceof Literal literal && literal.dataType() instanceof DatetimeType) {
        found.add(literal.value());
      }
    });
    return found;
  }

  private static PreparedStatement made(Asked asked, SparkSession owner, String user, LogicalPlan parsed) {
    boolean isForOnce = !isAskedAgain(asked);
    try {
      return OneRelease.seen(() -> PreparedStatement.of(owner, user, parsed, asked.limit, isForOnce));
    } catch (IllegalArgumentException | UnsupportedOperationException | MatchError | PreparedScan.TooLarge not) {
      leave(asked);
      return null;
    } catch (OneRelease.Busy busy) {
      throw busy;
    } catch (Exception wrong) { // of the analyzer
      refuseCancelled(wrong);
      return null;
    }
  }

  private static void refuseCancelled(Exception failed) {
    if (Thread.currentThread().isInterrupted() || failed instanceof TaskKilledException) {
      throw BoundedParser.<RuntimeException>unchecked(failed);
    }
  }

  private static synchronized boolean isLeft(Asked asked) {
    Known known = KNOWN.get(asked);
    return known != null && known.isLeft && known.changes == OneRelease.changes() && System.nanoTime() - known.leftAt < LEFT_NS;
  }

  private static synchronized boolean isAskedAgain(Asked asked) {
    Known known = KNOWN.get(asked);
    return known != null && known.isAskedAgain;
  }

  private static synchronized PreparedStatement taken(Asked asked) {
    Known known = KNOWN.get(asked);
    PreparedStatement found = known == null ? null : known.plans.poll();
    kept -= found == null ? 0 : 1;
    return found;
  }

  /** Kept once it was asked a second time: most statements are asked once, and their plans would only take room. */
  private static synchronized void giveBack(Asked asked, PreparedStatement statement) {
    Known known = KNOWN.computeIfAbsent(asked, any -> new Known());
    if (statement.lasts() && known.isAskedAgain) {
      known.plans.push(statement);
      kept++;
    }
    known.isAskedAgain = true;
    known.isLeft = false;
    makeRoom();
  }

  private static synchronized void leave(Asked asked) {
    Known known = KNOWN.computeIfAbsent(asked, any -> new Known());
    known.isLeft = true;
    known.leftAt = System.nanoTime();
    known.changes = OneRelease.changes();
    makeRoom();
  }

  /** The one that was not asked for longest goes first. */
  private static void makeRoom() {
    for (var eldest = KNOWN.values().iterator(); (KNOWN.size() > MOST_KNOWN || kept > MOST_KEPT) && eldest.hasNext();) {
      kept -= eldest.next().plans.size();
      eldest.remove();
    }
  }
}
