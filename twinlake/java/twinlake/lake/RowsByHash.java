package twinlake.lake;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.execution.UnsafeExternalRowSorter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators;
import org.apache.spark.util.collection.unsafe.sort.RecordComparator;

/**
 * Sorts rows by a hash of their keys, so that those of one key come after one another, but for the few whose hash is
 * another key's, too. Spark's sort compares these hashes alone, counts its memory and spills.
 */
final class RowsByHash extends UnsafeExternalRowSorter.PrefixComputer {
  private static final long SEED = 42;

  private final UnsafeProjection keys;
  private final Prefix prefix = new Prefix();

  private RowsByHash(UnsafeProjection keys) {
    this.keys = keys;
  }

  static scala.collection.Iterator<InternalRow> sorted(
      scala.collection.Iterator<InternalRow> rows, List<Attribute> columns, UnsafeProjection keys) {
    var schema = new StructType(columns.stream()
        .map(one -> new StructField(one.name(), one.dataType(), one.nullable(), one.metadata()))
        .toArray(StructField[]::new));
    UnsafeProjection bytes = UnsafeProjection.create(schema);
    try {
      var sorter = UnsafeExternalRowSorter.createWithRecordComparator(
          schema, InAnyOrder::new, PrefixComparators.LONG, new RowsByHash(keys),
          SparkEnv.get().memoryManager().pageSizeBytes(), true);
      while (rows.hasNext()) {
        InternalRow row = rows.next();
        sorter.insertRow(row instanceof UnsafeRow same ? same : bytes.apply(row));
      }
      return sorter.sort();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  @Override
  public Prefix computePrefix(InternalRow row) {
    UnsafeRow key = keys.apply(row);
    prefix.value = XXH64.hashUnsafeWords(key.getBaseObject(), key.getBaseOffset(), key.getSizeInBytes(), SEED);
    prefix.isNull = false;
    return prefix;
  }

  /** Rows of one hash may come in any order. */
  private static final class InAnyOrder extends RecordComparator {
    @Override
    public int compare(Object left, long leftAt, int leftSize, Object right, long rightAt, int rightSize) {
      return 0;
    }
  }
}
