package twinlake.reading;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.PosParameter;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.classic.ExpressionUtils$;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CloseableIterator;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import twinlake.lake.Seqs;

/**
 * Values for the `?` of a statement. They are literals of their own types; their text is never parsed.
 *
 * <p>Spark 4.1 keeps the values of `sql(text, values)` in a map by their places, and takes what the map gives for their order: of
 * five and more that is another one. So they are kept here until the statement is parsed.
 */
public final class Parameters {
  private static final ThreadLocal<Seq<Expression>> ORDERED = new ThreadLocal<>();
  private static final int TRIES = 20;

  private Parameters() {}

  /** How many `?` a statement has; none of a text whose error comes when it is run. */
  public static int count(String statement) {
    return Math.max(0, marks(statement));
  }

  /** The same; -1 where it cannot be known. */
  private static int marks(String statement) {
    Set<Integer> found = new HashSet<>(); // LIMIT has its own twice
    try {
      Trees.walk(new BoundedParser().parsePlan(statement), Integer.MAX_VALUE, node -> {
        if (node instanceof PosParameter mark) {
          found.add(mark.pos());
        }
      });
    } catch (Exception wrong) { // of the parser, which throws what Java cannot name
      return -1;
    }
    return found.size();
  }

  /**
   * The statement over each row of this Arrow stream, whose columns are the values by their places: its rows for the first one,
   * then those for the second, all of them as one release has them.
   */
  public static Dataset<Row> sql(SparkSession session, String statement, byte[] stream) {
    List<List<Expression>> sets = sets(stream);
    int marks = marks(statement);
    int given = sets.get(0).size();
    if (marks >= 0 && marks != given) {
      throw new Refused("a statement with " + marks + " `?`", "values for " + given + " were bound", "as many values as it has `?`");
    }
    if ((long) statement.length() * sets.size() > BoundedParser.LONGEST) {
      throw BoundedParser.tooMuch("a text of more than " + BoundedParser.LONGEST + " characters, over all sets of values");
    }
    for (int tried = 0; tried < TRIES; tried++) {
      Dataset<Row> all = sql(session, statement, sets.get(0));
      long release = OneRelease.ofLastStatement();
      boolean isOne = true;
      for (List<Expression> values : sets.subList(1, sets.size())) {
        all = all.union(sql(session, statement, values));
        isOne &= OneRelease.ofLastStatement() == release;
      }
      if (isOne) {
        return all;
      }
    }
    throw new OneRelease.Busy("the views are being switched to another release");
  }

  private static Dataset<Row> sql(SparkSession session, String statement, List<Expression> values) {
    ORDERED.set(Seqs.of(values));
    try {
      return session.sql(statement, values.stream().map(ExpressionUtils$.MODULE$::column).toArray());
    } finally {
      ORDERED.remove();
    }
  }

  /** The values that Spark has for the statement that this thread parses, in the order of its `?`. */
  static Seq<Expression> inOrder(Seq<Expression> sparks) {
    Seq<Expression> ordered = ORDERED.get();
    return ordered == null ? sparks : ordered;
  }

  private static List<List<Expression>> sets(byte[] stream) {
    Tuple2<CloseableIterator<InternalRow>, StructType> read = ArrowConverters$.MODULE$.fromIPCStream(stream);
    DataType[] types = Arrays.stream(read._2().fields()).map(one -> one.dataType()).toArray(DataType[]::new);
    UnsafeProjection copied = UnsafeProjection$.MODULE$.create(read._2()); // Arrow's own copy fails at NULLs in arrays
    List<List<Expression>> sets = new ArrayList<>();
    try {
      while (read._1().hasNext()) {
        InternalRow row = copied.apply(read._1().next()).copy(); // the stream's memory is given back
        List<Expression> values = new ArrayList<>();
        for (int at = 0; at < types.length; at++) {
          Object value = row.isNullAt(at) ? null : row.get(at, types[at]);
          values.add(new Literal(value, types[at]));
        }
        sets.add(values);
      }
      return sets;
    } finally {
      close(read._1());
    }
  }

  private static void close(CloseableIterator<InternalRow> read) {
    try {
      read.close();
    } catch (Exception failed) {
      throw BoundedParser.<RuntimeException>unchecked(failed);
    }
  }
}
