package twinlake.lake;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.Dependency;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/** Named places for rows: a plan made once over a slot reads whatever is in it when the plan is run. */
public final class Slots {
  private static final ConcurrentHashMap<String, Function<TaskContext, Iterator<InternalRow>>> FILLED =
      new ConcurrentHashMap<>();

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static final Seq<Dependency<?>> NO_DEPENDENCIES = (Seq) Nil$.MODULE$;

  private Slots() {}

  /** A relation of what will be in the slot, one partition. */
  public static Dataset<Row> relation(org.apache.spark.sql.classic.SparkSession session, String slot, StructType columns) {
    return session.internalCreateDataFrame(new SlotRows(session.sparkContext(), slot), columns, false);
  }

  /** The rows of an Arrow stream file. */
  public static void fill(String slot, String file) {
    FILLED.put(slot, task -> new Columns(Path.of(file), task));
  }

  /**
   * The rows of a relation without a shuffle, such as a micro-batch: of its partitions, divided into so many shares in
   * their order, those of one share, read one after the other.
   */
  public static void fill(String slot, Dataset<Row> relation, int share, int shares) {
    RDD<InternalRow> rows = ((org.apache.spark.sql.classic.Dataset<Row>) relation).queryExecution().toRdd();
    Partition[] all = rows.partitions();
    Partition[] some =
        Arrays.copyOfRange(all, all.length * share / shares, all.length * (share + 1) / shares);
    FILLED.put(slot, task -> new Partitions(rows, some, task));
  }

  public static void empty(String slot) {
    FILLED.remove(slot);
  }

  /** One partition, no dependencies: nothing has to be exchanged above it. */
  private static final class SlotRows extends RDD<InternalRow> {
    private final String slot;

    SlotRows(SparkContext context, String slot) {
      super(context, NO_DEPENDENCIES, ClassTag$.MODULE$.apply(InternalRow.class));
      this.slot = slot;
    }

    @Override
    public Partition[] getPartitions() {
      return new Partition[] {new Only()};
    }

    @Override
    public scala.collection.Iterator<InternalRow> compute(Partition only, TaskContext task) {
      Function<TaskContext, Iterator<InternalRow>> filled = FILLED.get(slot);
      if (filled == null) {
        throw new IllegalStateException("the slot " + slot + " is empty; only the driver's own threads can fill one");
      }
      return CollectionConverters.asScala(filled.apply(task));
    }
  }

  private static final class Only implements Partition {
    @Override
    public int index() {
      return 0;
    }
  }

  private static final class Partitions implements Iterator<InternalRow> {
    private final RDD<InternalRow> rows;
    private final Partition[] partitions;
    private final TaskContext task;
    private int next = 0;
    private scala.collection.Iterator<InternalRow> open = scala.collection.Iterator$.MODULE$.<InternalRow>empty();

    Partitions(RDD<InternalRow> rows, Partition[] partitions, TaskContext task) {
      this.rows = rows;
      this.partitions = partitions;
      this.task = task;
    }

    @Override
    public boolean hasNext() {
      while (!open.hasNext() && next < partitions.length) {
        open = rows.iterator(partitions[next++], task);
      }
      return open.hasNext();
    }

    @Override
    public InternalRow next() {
      return open.next();
    }
  }

  private static final class Columns implements Iterator<InternalRow> {
    private final ArrowStreamReader reader;
    private Iterator<InternalRow> open = List.<InternalRow>of().iterator();

    Columns(Path file, TaskContext task) {
      BufferAllocator memory = ArrowUtils.rootAllocator().newChildAllocator("slot", 0, Long.MAX_VALUE);
      try {
        reader = new ArrowStreamReader(FileChannel.open(file), memory);
      } catch (IOException error) {
        memory.close();
        throw new UncheckedIOException(error);
      }
      task.addTaskCompletionListener(
          ended -> {
            try {
              reader.close();
            } catch (IOException error) {
              throw new UncheckedIOException(error);
            } finally {
              memory.close();
            }
          });
    }

    @Override
    public boolean hasNext() {
      try {
        while (!open.hasNext() && reader.loadNextBatch()) {
          VectorSchemaRoot found = reader.getVectorSchemaRoot();
          List<ColumnVector> columns = new ArrayList<>();
          found.getFieldVectors().forEach(vector -> columns.add(new ArrowColumnVector(vector)));
          open = new ColumnarBatch(columns.toArray(ColumnVector[]::new), found.getRowCount()).rowIterator();
        }
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
      return open.hasNext();
    }

    @Override
    public InternalRow next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      return open.next();
    }
  }
}
