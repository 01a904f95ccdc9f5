package twinlake.lake;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;

/**
 * Results that wait for their readers in files, as Arrow streams: Spark's tasks write them, so that no memory holds one
 * as a whole. Their bytes are counted, of each and of all together, while they are written.
 */
public final class Spool {
  private static final long BATCH_ROWS = 4_096;
  private static final long BATCH_BYTES = 4 << 20; // a task holds one batch in memory, and its one last row
  private static final int END_BYTES = 8; // of a stream of Arrow
  private static final Map<String, AtomicLong> IN_ALL = new ConcurrentHashMap<>();
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

  /** The disk has to keep some room. */
  static final class NoRoom extends RuntimeException {
    private static final long serialVersionUID = 1L;

    NoRoom(long free) {
      super(String.format("the disk has only %,d bytes left", free));
    }
  }

  /** What a result may have: bytes, bytes with all others of its pool; and what its disk has to keep free. */
  public static final class Bounds {
    private final String pool;
    private final long most;
    private final long mostInAll;
    private final long keptFree;

    public Bounds(String pool, long most, long mostInAll, long keptFree) {
      this.pool = pool;
      this.most = most;
      this.mostInAll = mostInAll;
      this.keptFree = keptFree;
    }
  }

  /** What one result may have, and has. */
  private static final class Held {
    private final Bounds bounds;
    private final File folder;
    private final AtomicLong inAll;
    private long bytes = 0;
    private boolean isReleased = false;

    Held(String name, Bounds bounds) {
      this.bounds = bounds;
      this.folder = Path.of(name).getParent().toFile();
      this.inAll = pool(bounds.pool);
    }

    synchronized void take(long more, boolean isOnDisk) {
      if (isReleased) {
        throw new IllegalStateException("nobody waits for this result any more");
      }
      if (bytes + more > bounds.most) {
        throw new TooLarge(bounds.most);
      }
      if (isOnDisk && bounds.keptFree > 0) {
        long free = folder.getUsableSpace();
        if (free - more < bounds.keptFree) {
          throw new NoRoom(free);
        }
      }
      if (inAll.addAndGet(more) > bounds.mostInAll) {
        inAll.addAndGet(-more);
        throw new Full(bounds.mostInAll);
      }
      bytes += more;
    }

    synchronized void giveBack(long some) {
      if (!isReleased) {
        bytes -= some;
        inAll.addAndGet(-some);
      }
    }

    synchronized void release() {
      giveBack(bytes);
      isReleased = true;
    }
  }

  /** Counts a result that somebody else holds in memory; to be released by the same name. */
  public static void hold(String name, long bytes, Bounds bounds) {
    held(name, bounds).take(bytes, false);
  }

  public static void release(String name) {
    Held held = HELD.remove(name);
    if (held != null) {
      held.release();
    }
  }

  /** What all results of a pool hold now. */
  public static long inAll(String name) {
    return pool(name).get();
  }

  private static AtomicLong pool(String name) {
    return IN_ALL.computeIfAbsent(name, any -> new AtomicLong());
  }

  /**
   * Computes a relation by Spark's tasks: each partition that has rows into a file `name`-partition, a stream of its
   * own, and no rows into `name`-schema. Returns how many partitions there are. It is counted until it is released by the name, also when this fails.
   */
  public static int write(Dataset<Row> relation, String name, Bounds bounds) throws IOException {
    var planned = (org.apache.spark.sql.classic.Dataset<Row>) relation;
    String zone = planned.sparkSession().sessionState().conf().sessionLocalTimeZone();
    // a null struct has nulls in its fields, whatever they are declared as: other readers of Arrow mind
    StructType columns = planned.schema().asNullable();
    held(name, bounds);
    Path empty = Path.of(name + "-schema");
    try (OutputStream out = Files.newOutputStream(empty)) {
      new ArrowBatchStreamWriter(columns, out, zone, false, false).end();
    }
    int head = Math.toIntExact(Files.size(empty)) - END_BYTES;
    RDD<InternalRow> rows = planned.queryExecution().executedPlan().execute();
    rows.sparkContext().runJob(rows, new Write(name, columns, zone, head), ClassTag$.MODULE$.Long());
    return rows.partitions().length;
  }

  private static Held held(String name, Bounds bounds) {
    return HELD.computeIfAbsent(name, any -> new Held(name, bounds));
  }

  /** One task's; it runs in this JVM. A task that is ended and started again starts its file again. */
  private static final class Write extends AbstractFunction2<TaskContext, Iterator<InternalRow>, Object>
      implements Serializable {
    private static final long serialVersionUID = 1L;

    private final String name;
    private final StructType columns;
    private final String zone;
    private final int head;

    Write(String name, StructType columns, String zone, int head) {
      this.name = name;
      this.columns = columns;
      this.zone = zone;
      this.head = head;
    }

    @Override
    public Object apply(TaskContext task, Iterator<InternalRow> rows) {
      Held held = HELD.get(name);
      if (held == null) {
        throw new IllegalStateException("nobody waits for this result any more");
      }
      Path file = Path.of(name + "-" + task.partitionId());
      long[] taken = {0};
      boolean isWritten = false;
      try {
        if (rows.hasNext()) {
          Iterator<byte[]> streams =
              ArrowConverters$.MODULE$.toBatchWithSchemaIterator(rows, columns, BATCH_ROWS, BATCH_BYTES, zone, false, false);
          try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(file))) {
            var writer = new ArrowBatchStreamWriter(columns, out, zone, false, false);
            writer.writeBatches(streams.map(new Counted(held, taken, head)));
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

  /** Of a batch that is a stream of its own, without the stream's head and end. */
  private static final class Counted extends scala.runtime.AbstractFunction1<byte[], byte[]> {
    private final Held held;
    private final long[] taken;
    private final int head;

    Counted(Held held, long[] taken, int head) {
      this.held = held;
      this.taken = taken;
      this.head = head;
    }

    @Override
    public byte[] apply(byte[] stream) {
      byte[] batch = Arrays.copyOfRange(stream, head, stream.length - END_BYTES);
      held.take(batch.length, true);
      taken[0] += batch.length;
      return batch;
    }
  }
}
