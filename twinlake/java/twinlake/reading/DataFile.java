package twinlake.reading;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.time.Instant;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.format.DateTimeParseException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.TimestampType;
import scala.jdk.javaapi.CollectionConverters;

/** One live data file, and what Delta's log says of the values in it. */
final class DataFile {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long LAST = micros(Instant.parse("9999-12-31T23:59:59.999Z"));
  private final FileStatus status;

  /** Until they are parsed. */
  private String statistics;

  private JsonNode parsed;

  DataFile(FileStatus status, String statistics) {
    this.status = status;
    this.statistics = statistics;
  }

  FileStatus status() {
    return status;
  }

  /** How many rows it has; none where its statistics do not tell. */
  long rows() {
    return statistics().path("numRecords").longValue();
  }

  /** Whether a row in it may fulfil the condition; true wherever its statistics do not tell. */
  boolean mayHold(Expression condition) {
    if (condition instanceof And both) {
      return mayHold(both.left()) && mayHold(both.right());
    }
    if (condition instanceof Or either) {
      return mayHold(either.left()) || mayHold(either.right());
    }
    if (condition instanceof In in) {
      return CollectionConverters.asJava(in.list()).stream()
          .anyMatch(one -> !(one instanceof Literal value) || mayEqual(in.value(), value.value()));
    }
    if (condition instanceof InSet in) {
      return CollectionConverters.asJava(in.hset()).stream().anyMatch(value -> mayEqual(in.child(), value));
    }
    if (condition instanceof BinaryComparison comparison) {
      if (comparison.right() instanceof Literal value) {
        return mayHold(comparison, comparison.left(), value.value(), false);
      }
      if (comparison.left() instanceof Literal value) {
        return mayHold(comparison, comparison.right(), value.value(), true);
      }
    }
    return true;
  }

  private boolean mayHold(BinaryComparison comparison, Expression column, Object value, boolean turned) {
    boolean greater = comparison instanceof GreaterThan || comparison instanceof GreaterThanOrEqual;
    boolean less = comparison instanceof LessThan || comparison instanceof LessThanOrEqual;
    if (turned ? less : greater) {
      return !isBelow(column, value);
    }
    if (turned ? greater : less) {
      return !isAbove(column, value);
    }
    return !(comparison instanceof EqualTo || comparison instanceof EqualNullSafe) || mayEqual(column, value);
  }

  private boolean mayEqual(Expression column, Object value) {
    return !isBelow(column, value) && !isAbove(column, value);
  }

  /** Whether all values of the column are less than the given one. */
  private boolean isBelow(Expression column, Object value) {
    Long bound = bound("maxValues", column);
    // a time's bound is written in milliseconds, and not every writer rounds up
    long slack = column.dataType() instanceof TimestampType ? 999 : 0;
    if (slack > 0 && bound != null && bound >= LAST) {
      return false; // what is later is written as this
    }
    return bound != null && value instanceof Number number && bound + slack < number.longValue();
  }

  private boolean isAbove(Expression column, Object value) {
    Long bound = bound("minValues", column);
    return bound != null && value instanceof Number number && bound > number.longValue();
  }

  /** The bound as Spark has such values inside; null where there is none, or none of a type that is known here. */
  private Long bound(String which, Expression column) {
    JsonNode value = below(statistics().path(which), column);
    DataType type = column.dataType();
    try {
      if (type instanceof TimestampType && value.isTextual()) {
        return micros(OffsetDateTime.parse(value.textValue()).toInstant());
      }
      if (type instanceof DateType && value.isTextual()) {
        return LocalDate.parse(value.textValue()).toEpochDay();
      }
    } catch (DateTimeParseException other) {
      return null;
    }
    return isInteger(type) && value.canConvertToLong() && value.isIntegralNumber() ? value.longValue() : null;
  }

  private static long micros(Instant moment) {
    return moment.getEpochSecond() * 1_000_000 + moment.getNano() / 1_000;
  }

  private static boolean isInteger(DataType type) {
    return type instanceof LongType || type instanceof IntegerType || type instanceof ShortType || type instanceof ByteType;
  }

  private static JsonNode below(JsonNode value, Expression column) {
    if (column instanceof Attribute attribute) {
      return value.path(attribute.name());
    }
    if (column instanceof GetStructField field) {
      return below(value, field.child()).path(field.extractFieldName());
    }
    return MissingNode.getInstance();
  }

  private synchronized JsonNode statistics() {
    if (parsed == null) {
      try {
        parsed = statistics == null ? MissingNode.getInstance() : JSON.readTree(statistics);
      } catch (JsonProcessingException none) {
        parsed = MissingNode.getInstance();
      }
      statistics = null;
    }
    return parsed;
  }
}
