package twinlake.reading;

import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFooterReader;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Parquet whose small files stay in memory once they were read: a table that is fed ends in many of them, each of which
 * costs Spark milliseconds to open, and from one statement to the next only a few are new. A data file never changes.
 */
final class SmallFiles extends ParquetFileFormat {
  private static final long SMALL_BYTES = 256 << 10;
  private static final long MOST_ROWS = 16_384;

  /** Of look-ups, which read few files again and again. */
  private static final long LOOK_UP_BYTES = 16L << 20;
  private static final long LOOK_UP_ROWS = 1L << 20;
  private static final long KEPT_BYTES = 128L << 20;
  private static final int KEPT_SETTINGS = 32;

  /** What a value takes beside its own bytes: where a text begins and how long it is, whether it is there. */
  private static final long VALUE_BYTES = 12;

  private record Columns(String path, String columns) {}

  private record Rows(ColumnarBatch batch, long bytes) {}

  private static final Map<Columns, Rows> KEPT = new LinkedHashMap<>(16, 0.75f, true);
  private static long keptBytes = 0;

  /** How a file is opened for some columns; too much to send it along with every task. */
  private static final Map<String, Configuration> SETTINGS = new LinkedHashMap<>();

  private final long mostBytes;
  private final long mostRows;

  SmallFiles() {
    this(SMALL_BYTES, MOST_ROWS);
  }

  private SmallFiles(long mostBytes, long mostRows) {
    this.mostBytes = mostBytes;
    this.mostRows = mostRows;
  }

  /** The same, for larger files as well. */
  static SmallFiles ofLookUps() {
    return new SmallFiles(LOOK_UP_BYTES, LOOK_UP_ROWS);
  }

  @Override
  public Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
      SparkSession session, StructType data, StructType partition, StructType required, Seq<Filter> filters,
      scala.collection.immutable.Map<String, String> options, Configuration settings) {
    Function1<PartitionedFile, Iterator<InternalRow>> plain =
        super.buildReaderWithPartitionValues(session, data, partition, required, filters, options, settings);
    String columnar = CollectionConverters.asJava(options).get(FileFormat$.MODULE$.OPTION_RETURNING_BATCH());
    if (!Boolean.parseBoolean(columnar) || required.isEmpty()) {
      return plain;
    }
    String columns = required.json();
    keep(columns, settings);
    return new Reading(plain, columns, mostBytes, mostRows);
  }

  private static synchronized void keep(String columns, Configuration complete) {
    if (!SETTINGS.containsKey(columns)) {
      if (SETTINGS.size() == KEPT_SETTINGS) {
        SETTINGS.remove(SETTINGS.keySet().iterator().next());
      }
      SETTINGS.put(columns, new Configuration(complete));
    }
  }

  private static synchronized Configuration settings(String columns) {
    return SETTINGS.get(columns);
  }

  private static synchronized Rows kept(Columns columns) {
    return KEPT.get(columns);
  }

  private static synchronized void keep(Columns columns, Rows rows) {
    Rows before = KEPT.put(columns, rows);
    keptBytes += rows.bytes - (before == null ? 0 : before.bytes);
    for (var eldest = KEPT.values().iterator(); keptBytes > KEPT_BYTES && eldest.hasNext();) {
      keptBytes -= eldest.next().bytes;
      eldest.remove();
    }
  }

  private static int leaves(DataType type) {
    return type instanceof StructType fields
        ? Arrays.stream(fields.fields()).mapToInt(field -> leaves(field.dataType())).sum()
        : 1;
  }

  /** Batches of a file; in a task, which is sent here as bytes. */
  private static final class Reading extends AbstractFunction1<PartitionedFile, Iterator<InternalRow>>
      implements Serializable {
    private static final long serialVersionUID = 1L;
    private final Function1<PartitionedFile, Iterator<InternalRow>> plain;
    private final String columns;
    private final long mostBytes;
    private final long mostRows;

    Reading(Function1<PartitionedFile, Iterator<InternalRow>> plain, String columns, long mostBytes, long mostRows) {
      this.plain = plain;
      this.columns = columns;
      this.mostBytes = mostBytes;
      this.mostRows = mostRows;
    }

    @Override
    public Iterator<InternalRow> apply(PartitionedFile file) {
      if (file.fileSize() > mostBytes || file.length() < file.fileSize()) {
        return plain.apply(file);
      }
      Columns wanted = new Columns(file.urlEncodedPath(), columns);
      Rows rows = kept(wanted);
      if (rows == null) {
        rows = whole(file);
        if (rows == null) {
          return plain.apply(file);
        }
        keep(wanted, rows);
      }
      return only(rows.batch);
    }

    /** The file's rows as one batch; null where they are too many, or how to open it is not known any more. */
    private Rows whole(PartitionedFile file) {
      Configuration settings = settings(columns);
      if (settings == null) {
        return null;
      }
      try {
        var opened = ParquetFooterReader.openFileAndReadFooter(settings, file, true);
        try (SeekableInputStream stream = opened.inputStreamOpt().orElse(null)) {
          List<BlockMetaData> groups = opened.footer().getBlocks();
          if (groups.size() != 1 || groups.get(0).getRowCount() > mostRows) {
            return null;
          }
          int rows = (int) groups.get(0).getRowCount();
          long bytes = groups.get(0).getTotalByteSize() + VALUE_BYTES * rows * leaves(DataType.fromJson(columns));
          if (bytes > KEPT_BYTES / 4) {
            return null;
          }
          try (Whole reader = new Whole(rows)) {
            reader.initialize(
                new FileSplit(file.toPath(), 0, file.fileSize(), new String[0]),
                new TaskAttemptContextImpl(settings, new TaskAttemptID()),
                Option.apply(opened.inputFile()), Option.apply(stream), Option.apply(opened.footer()));
            return new Rows(reader.batch(), bytes);
          }
        }
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      } catch (InterruptedException ended) {
        throw OneRelease.cancelled(ended);
      }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Iterator<InternalRow> only(ColumnarBatch kept) {
      List<ColumnVector> columns = new ArrayList<>();
      for (int number = 0; number < kept.numCols(); number++) {
        columns.add(kept.column(number));
      }
      ColumnarBatch own = new ColumnarBatch(columns.toArray(ColumnVector[]::new), kept.numRows());
      return (Iterator) CollectionConverters.asScala(List.of(own).iterator()); // Spark takes batches for rows here
    }
  }

  /** A reader that leaves its batch alone when its file is closed. */
  private static final class Whole extends VectorizedParquetRecordReader {
    Whole(int rows) {
      super(null, "CORRECTED", "UTC", "CORRECTED", "UTC", false, Math.max(rows, 1));
    }

    ColumnarBatch batch() throws IOException {
      initBatch(new StructType(), InternalRow.empty());
      enableReturningBatches();
      nextBatch();
      return resultBatch();
    }

    @Override
    public void close() throws IOException {
      Closeable file = reader;
      if (file != null) {
        file.close();
      }
    }
  }
}
