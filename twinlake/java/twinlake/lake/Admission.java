package twinlake.lake;

import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;

/**
 * Lets an executor begin only if it runs the driver's programs on the driver's lake. One that has another folder at
 * that place would write files there that the driver commits and no reader finds; so it is asked before its first task,
 * whenever it comes.
 */
public final class Admission implements SparkPlugin {
  /** The setting that says where the lake is. */
  public static final String LAKE = "spark.twinlake.lake";

  private static final String PROGRAMS = "programs";
  private static final String UNMADE = "Unable to create executor";
  private static final Set<String> ADMITTED = ConcurrentHashMap.newKeySet();
  private static volatile String refused = "";
  private static volatile long refusedAt;

  /** How many executors were ever let in. */
  public static int admitted() {
    return ADMITTED.size();
  }

  /** Why the newest one that was not let in was not; empty for none. */
  public static String refused() {
    return refused;
  }

  /** How long ago that was, in seconds. */
  public static double refusedBefore() {
    return (System.nanoTime() - refusedAt) / 1e9;
  }

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext spark, PluginContext here) {
        spark.addSparkListener(new Removals());
        String lake = here.conf().get(LAKE);
        try {
          return Map.of(LAKE, lake, PROGRAMS, Programs.here(lake));
        } catch (IOException error) {
          throw new IllegalStateException("the lake " + lake + " cannot be read", error);
        }
      }

      /** Whether what the executor has written is in the driver's lake: a copy of it has the same files, too. */
      @Override
      public Object receive(Object message) throws IOException {
        String[] words = message.toString().split(" ", 2);
        boolean seen = Programs.sees(words[1]);
        if (seen) {
          ADMITTED.add(words[0]);
        }
        return seen;
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      @Override
      public void init(PluginContext here, Map<String, String> driver) {
        String theirs = driver.get(PROGRAMS);
        try {
          String mine = Programs.here(driver.get(LAKE));
          if (!mine.equals(theirs)) {
            throw new IllegalStateException(
                "they have " + lacking(mine, theirs) + "; the lake server has " + lacking(theirs, mine));
          }
          String written = Programs.write(driver.get(LAKE));
          try {
            if (!Boolean.TRUE.equals(here.ask(here.executorID() + " " + written))) {
              throw new IllegalStateException(
                  "they have a copy of the lake at " + driver.get(LAKE) + "; the lake server does not see what they write");
            }
          } finally {
            Programs.remove(written);
          }
        } catch (IOException error) {
          throw new IllegalStateException("they cannot use " + driver.get(LAKE) + ": " + error, error);
        } catch (InterruptedException error) {
          throw new IllegalStateException("they were ended", error);
        } catch (RuntimeException error) {
          throw error;
        } catch (Exception error) {
          throw new IllegalStateException("the lake server does not answer: " + error, error);
        }
      }
    };
  }

  private static String lacking(String names, String other) {
    Set<String> known = Set.of(other.split(", "));
    return String.join(", ", Arrays.stream(names.split(", ")).filter(one -> !known.contains(one)).toList());
  }

  private static final class Removals extends SparkListener {
    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
      if (removed.reason().contains(UNMADE)) {
        refused = removed.reason();
        refusedAt = System.nanoTime();
      }
    }
  }
}
