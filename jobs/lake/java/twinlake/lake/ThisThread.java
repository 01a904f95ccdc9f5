package twinlake.lake;

import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics$;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.rdd.RDD;
import scala.Option;
import scala.collection.immutable.Map$;

/**
 * Computes the only partition of an RDD without a shuffle in the calling thread.
 *
 * <p>A task that the scheduler runs costs more than a small batch: the plan is serialized, and read back with all
 * that its expressions prepare. And it waits for a slot, which a rebuild may hold for seconds: Spark takes none away.
 */
final class ThisThread {
  private static final AtomicLong TASKS = new AtomicLong(Long.MIN_VALUE); // far from those of the scheduler

  /** What to do with the elements, while they may be taken. */
  interface Use<T> {
    void of(scala.collection.Iterator<T> elements) throws Exception;
  }

  private ThisThread() {}

  /** `settings` are what expressions that ask for the session's see, as in any task. */
  static <T> void compute(RDD<T> rows, Properties settings, Use<T> use) throws Exception {
    if (rows.partitions().length != 1) {
      throw new IllegalArgumentException("not one partition but " + rows.partitions().length);
    }
    SparkEnv spark = SparkEnv.get();
    long number = TASKS.getAndIncrement();
    TaskMemoryManager memory = new TaskMemoryManager(spark.memoryManager(), number);
    TaskContextImpl task =
        new TaskContextImpl(
            0, 0, 0, number, 0, 1, memory, settings, spark.metricsSystem(), TaskMetrics$.MODULE$.empty(), 1,
            Map$.MODULE$.empty());
    spark.blockManager().registerTask(number);
    TaskContext$.MODULE$.setTaskContext(task);
    Throwable failure = null;
    try {
      use.of(rows.iterator(rows.partitions()[0], task));
    } catch (Throwable error) {
      failure = error;
      task.markTaskFailed(error);
      throw error;
    } finally {
      try {
        task.markTaskCompleted(Option.apply(failure));
      } finally {
        memory.cleanUpAllAllocatedMemory();
        spark.blockManager().releaseAllLocksForTask(number);
        TaskContext$.MODULE$.unset();
      }
    }
  }
}
