package twinlake.reading;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.sql.SparkSession;

/**
 * Statements over JDBC AS OF a moment, which a connection names by {@link #SETTING}: Python, which knows the log of
 * releases, makes the views of the moment (`reading/moments.py`), and the statement waits for them.
 */
public final class Moments {
  static final String SETTING = "twinlake.as_of";

  private static final ObjectMapper JSON = new ObjectMapper();
  private static final BlockingQueue<Asked> ASKED = new LinkedBlockingQueue<>();
  private static final Map<Long, Asked> WAITING = new ConcurrentHashMap<>();
  private static final AtomicLong NEXT = new AtomicLong();

  /** Whether it was this setting that has bound the thread. */
  private static final ThreadLocal<Boolean> BOUND = new ThreadLocal<>();

  private record Asked(long id, String asOf, String sql, CompletableFuture<String> schema) {}

  private Moments() {}

  /** The next statement that waits, as JSON: id, as_of and sql; null where none does for so long. */
  public static String next(long ms) throws InterruptedException, JsonProcessingException {
    Asked one = ASKED.poll(ms, TimeUnit.MILLISECONDS);
    return one == null ? null : JSON.writeValueAsString(Map.of("id", one.id, "as_of", one.asOf, "sql", one.sql));
  }

  /** The views that a statement reads are in this schema. */
  public static void made(long id, String schema) {
    Asked one = WAITING.get(id);
    if (one != null) {
      one.schema.complete(schema);
    }
  }

  /** There are none, and why. */
  public static void failed(long id, String what, String why, String remedy) {
    Asked one = WAITING.get(id);
    if (one != null) {
      one.schema.completeExceptionally(Refused.toDo("AS OF " + one.asOf, what + (why.isEmpty() ? "" : ": " + why), remedy));
    }
  }

  /** This thread's statement reads the tables as its session's setting says; commands are about now. */
  static void bind(SparkSession session, String sql, boolean isCommand) {
    String asOf = isCommand ? "" : session.conf().get(SETTING, "").strip();
    if (!asOf.isEmpty()) {
      PastTables.bind(schema(asOf, sql));
      BOUND.set(true);
    } else if (BOUND.get() != null) {
      BOUND.remove();
      PastTables.bind(null);
    }
  }

  private static String schema(String asOf, String sql) {
    Asked one = new Asked(NEXT.incrementAndGet(), asOf, sql, new CompletableFuture<>());
    WAITING.put(one.id, one);
    ASKED.add(one);
    try {
      return one.schema.get();
    } catch (InterruptedException ended) {
      throw OneRelease.cancelled(ended);
    } catch (ExecutionException failed) {
      throw failed.getCause() instanceof RuntimeException known ? known : new IllegalStateException(failed.getCause());
    } finally {
      WAITING.remove(one.id);
    }
  }
}
