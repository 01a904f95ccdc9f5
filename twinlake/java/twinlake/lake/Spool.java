package twinlake.lake;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;

/**
 * Results that wait for their readers in files, as Arrow streams: Spark's tasks write them, so that no memory holds one
 * as a whole. Their bytes are counted, of each and of all together, while they are written.
 */
public final class Spool {
  private static final AtomicLong IN_ALL = new AtomicLong();
  private static final Map<String, Held> HELD = new ConcurrentHashMap<>();

  private Spool() {}

  /** One result has more bytes than it may have. */
  static final class TooLarge extends RuntimeException {
    private static final long serialVersionUID = 1L;

    TooLarge(long most) {
      super(String.format("it has more than %,d bytes", most));
    }
  }

  /** There is no room beside what others hold. */
  static final class Full extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Full(long most) {
      super(String.format("the answers that are on their way have more than %,d bytes", most));
    }
  }

  /** What one result may have, and has. */
  private static final class Held {
    private final long most;
    private final long mostInAll;
    private long bytes = 0;
    private boolean isReleased = false;

    Held(long most, long mostInAll) {
      this.most = most;
      this.mostInAll = mostInAll;
    }

    synchronized void take(long more) {
      if (isReleased) {
        throw new IllegalStateException("nobody waits for this result any more");
      }
      if (bytes + more > most) {
        throw new TooLarge(most);
      }
      if (IN_ALL.addAndGet(more) > mostInAll) {
        IN_ALL.addAndGet(-more);
        throw new Full(mostInAll);
      }
      bytes += more;
    }

    synchronized void giveBack(long some) {
      if (!isReleased) {
        bytes -= some;
        IN_ALL.addAndGet(-some);
      }
    }

    synchronized void release() {
      giveBack(bytes);
      isReleased = true;
    }
  }

  /** Counts a result that somebody else holds; to be released by the same name. */
  public static void hold(String name, long bytes, long most, long mostInAll) {
    held(name, most, mostInAll).take(bytes);
  }

  public static void release(String name) {
    Held held = HELD.remove(name);
    if (held != null) {
      held.release();
    }
  }

  /** What all results hold now. */
  public static long inAll() {
    return IN_ALL.get();
  }

  /**
   * Computes a relation by Spark's tasks: each partition that has rows into a file `name`-partition, a stream of its
   * own, and no rows into `name`-schema. Returns how many partitions there are. It is counted until it is released by the name, also when this fails.
   */
  public static int write(Dataset<Row> relation, String name, long most, long mostInAll) throws IOException {
    var planned = (org.apache.spark.sql.classic.Dataset<Row>) relation;
    String zone = planned.sparkSession().sessionState().conf().sessionLocalTimeZone();
    // a null struct has nulls in its fields, whatever they are declared as: other readers of Arrow mind
    StructType columns = planned.schema().asNullable();
    held(name, most, mostInAll);
    try (OutputStream out = Files.newOutputStream(Path.of(name + "-schema"))) {
      new ArrowBatchStreamWriter(columns, out, zone, false, false).end();
    }
    RDD<byte[]> batches = planned.toArrowBatchRdd();
    batches.sparkContext().runJob(batches, new Write(name, columns, zone), ClassTag$.MODULE$.Long());
    return batches.partitions().length;
  }

  private static Held held(String name, long most, long mostInAll) {
    return HELD.computeIfAbsent(name, any -> new Held(most, mostInAll));
  }

  /** One task's; it runs in this JVM. A task that is ended and started again starts its file again. */
  private static final class Write extends AbstractFunction2<TaskContext, Iterator<byte[]>, Object>
      implements Serializable {
    private static final long serialVersionUID = 1L;

    private final String name;
    private final StructType columns;
    private final String zone;

    Write(String name, StructType columns, String zone) {
      this.name = name;
      this.columns = columns;
      this.zone = zone;
    }

    @Override
    public Object apply(TaskContext task, Iterator<byte[]> batches) {
      Held held = HELD.get(name);
      if (held == null) {
        throw new IllegalStateException("nobody waits for this result any more");
      }
      Path file = Path.of(name + "-" + task.partitionId());
      long[] taken = {0};
      boolean isWritten = false;
      try {
        if (batches.hasNext()) {
          try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file))) {
            var writer = new ArrowBatchStreamWriter(columns, out, zone, false, false);
            writer.writeBatches(batches.map(new Counted(held, taken)));
            writer.end();
          }
        }
        isWritten = true;
        return taken[0];
      } catch (IOException error) {
        throw new java.io.UncheckedIOException(error);
      } finally {
        if (!isWritten) {
          held.giveBack(taken[0]);
          file.toFile().delete();
        }
      }
    }
  }

  private static final class Counted extends scala.runtime.AbstractFunction1<byte[], byte[]> {
    private final Held held;
    private final long[] taken;

    Counted(Held held, long[] taken) {
      this.held = held;
      this.taken = taken;
    }

    @Override
    public byte[] apply(byte[] batch) {
      held.take(batch.length);
      taken[0] += batch.length;
      return batch;
    }
  }
}
