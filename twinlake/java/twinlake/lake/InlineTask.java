package twinlake.lake;

import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics$;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.RDD;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Computes the only partition of an RDD without a shuffle in the calling thread.
 *
 * <p>A task that the scheduler runs costs more than a small batch: the plan is serialized, and read back with all
 * that its expressions prepare. And it waits for a slot, which a rebuild may hold for seconds: Spark takes none away.
 */
public final class InlineTask {
  private static final AtomicLong NUMBERS = new AtomicLong(Long.MIN_VALUE); // far from those of the scheduler
  private static final Set<InlineTask> RUNNING = ConcurrentHashMap.newKeySet();

  private final Thread thread = Thread.currentThread();
  private final TaskContextImpl task;
  private final Set<String> tags;
  private boolean ended = false;

  /** What to do with the elements, while they may be taken. */
  interface Use<T> {
    void of(scala.collection.Iterator<T> elements) throws Exception;
  }

  private InlineTask(TaskContextImpl task, Set<String> tags) {
    this.task = task;
    this.tags = tags;
  }

  /** Interrupts what threads with this job tag compute here, as Spark does with the tasks of a job. */
  public static void cancel(String tag) {
    for (InlineTask one : RUNNING) {
      if (one.tags.contains(tag)) {
        one.interrupt();
      }
    }
  }

  /** Whether it has one partition, and nothing has to be exchanged to compute that. */
  static boolean can(RDD<?> rows) {
    return rows.partitions().length == 1 && !isShuffled(rows);
  }

  private static boolean isShuffled(RDD<?> rows) {
    return CollectionConverters.asJava(rows.dependencies()).stream()
        .anyMatch(above -> above instanceof ShuffleDependency || isShuffled(above.rdd()));
  }

  /** `settings` are what expressions that ask for the session's see, as in any task. */
  static <T> void compute(RDD<T> rows, Properties settings, Use<T> use) throws Exception {
    if (!can(rows)) {
      throw new IllegalArgumentException("more than one partition, or a shuffle: " + rows);
    }
    SparkEnv spark = SparkEnv.get();
    long number = NUMBERS.getAndIncrement();
    TaskMemoryManager memory = new TaskMemoryManager(spark.memoryManager(), number);
    TaskContextImpl task =
        new TaskContextImpl(
            0, 0, 0, number, 0, 1, memory, settings, spark.metricsSystem(), TaskMetrics$.MODULE$.empty(), 1,
            Map$.MODULE$.empty());
    InlineTask running = new InlineTask(task, CollectionConverters.asJava(rows.sparkContext().getJobTags()));
    spark.blockManager().registerTask(number);
    TaskContext$.MODULE$.setTaskContext(task);
    RUNNING.add(running);
    Throwable failure = null;
    try {
      use.of(rows.iterator(rows.partitions()[0], task));
    } catch (Throwable error) {
      failure = error;
      task.markTaskFailed(error);
      throw error;
    } finally {
      RUNNING.remove(running);
      running.end();
      try {
        task.markTaskCompleted(Option.apply(failure));
      } finally {
        memory.cleanUpAllAllocatedMemory();
        spark.blockManager().releaseAllLocksForTask(number);
        TaskContext$.MODULE$.unset();
      }
    }
  }

  private synchronized void interrupt() {
    if (!ended) {
      task.markInterrupted("cancelled");
      thread.interrupt();
    }
  }

  /** Whoever uses the thread next is not interrupted. */
  private synchronized void end() {
    ended = true;
    Thread.interrupted();
  }
}
