package twinlake.reading;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Which rows of a batch may be meant: those with the values that conditions ask for, of columns whose values are one
 * where their bytes are. Whatever else conditions say is left to who asks them for each row.
 */
final class Sought {
  private final List<Equal> equals = new ArrayList<>();

  private record Equal(int column, DataType type, Object value) {}

  Sought(List<Expression> conditions, List<String> columns) {
    for (Expression condition : conditions) {
      if (condition instanceof EqualTo || condition instanceof EqualNullSafe) {
        BinaryComparison both = (BinaryComparison) condition;
        add(both.left(), both.right(), columns);
        add(both.right(), both.left(), columns);
      }
    }
  }

  private void add(Expression column, Expression value, List<String> columns) {
    if (column instanceof Attribute one && value instanceof Literal literal && columns.contains(one.name())
        && isPlain(one.dataType()) && one.dataType().equals(literal.dataType())) {
      equals.add(new Equal(columns.indexOf(one.name()), one.dataType(), literal.value()));
    }
  }

  private static boolean isPlain(DataType type) {
    return type instanceof LongType || type instanceof IntegerType || type instanceof TimestampType
        || type instanceof DateType || type instanceof StringType text && text.isUTF8BinaryCollation();
  }

  /** The rows of what a file gives: a batch, or a row. */
  Iterator<InternalRow> in(Object read) {
    return read instanceof ColumnarBatch batch ? new Rows(batch) : List.of((InternalRow) read).iterator();
  }

  private boolean mayBe(ColumnarBatch batch, int row) {
    for (Equal one : equals) {
      ColumnVector column = batch.column(one.column);
      boolean isNull = column.isNullAt(row);
      if (isNull != (one.value == null) || !isNull && !isSame(column, row, one)) {
        return false;
      }
    }
    return true;
  }

  private static boolean isSame(ColumnVector column, int row, Equal one) {
    if (one.type instanceof StringType) {
      return column.getUTF8String(row).equals((UTF8String) one.value);
    }
    boolean isLong = one.type instanceof LongType || one.type instanceof TimestampType;
    return (isLong ? column.getLong(row) : column.getInt(row)) == ((Number) one.value).longValue();
  }

  private final class Rows implements Iterator<InternalRow> {
    private final ColumnarBatch batch;
    private int next = -1;

    Rows(ColumnarBatch batch) {
      this.batch = batch;
      seek();
    }

    private void seek() {
      do {
        next++;
      } while (next < batch.numRows() && !mayBe(batch, next));
    }

    @Override
    public boolean hasNext() {
      return next < batch.numRows();
    }

    @Override
    public InternalRow next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      InternalRow found = batch.getRow(next);
      seek();
      return found;
    }
  }
}
