package twinlake.reading;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The size that each row gives a function, as it is, or the row's statement fails; it has its child's name. */
final class BoundedSize extends Expression implements CodegenFallback, Serializable {
  private static final long serialVersionUID = 1L;
  private final Expression child;
  private final String function;
  private final double least;
  private final double largest;

  BoundedSize(Expression child, String function, double least, double largest) {
    this.child = child;
    this.function = function;
    this.least = least;
    this.largest = largest;
  }

  @Override
  public Object eval(InternalRow row) {
    Object value = child.eval(row);
    if (value == null) {
      return null;
    }
    double size = value instanceof Decimal one ? one.toDouble() : ((Number) value).doubleValue();
    if (size < least || size > largest) {
      throw Sizes.tooLarge(function, "got " + value + " from a row");
    }
    return value;
  }

  @Override
  public Seq<Expression> children() {
    return List$.MODULE$.from(Option.apply(child));
  }

  @Override
  public boolean foldable() {
    return child.foldable();
  }

  @Override
  public DataType dataType() {
    return child.dataType();
  }

  @Override
  public boolean nullable() {
    return child.nullable();
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return CodegenFallback.super.doGenCode(context, code);
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> others) {
    return new BoundedSize(CollectionConverters.asJava(others).get(0), function, least, largest);
  }

  @Override
  public String sql() {
    return child.sql();
  }

  @Override
  public String toString() {
    return child.toString();
  }

  @Override
  public int productArity() {
    return 4;
  }

  @Override
  public Object productElement(int number) {
    return switch (number) {
      case 0 -> child;
      case 1 -> function;
      case 2 -> least;
      default -> largest;
    };
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof BoundedSize;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof BoundedSize one && child.equals(one.child) && function.equals(one.function)
        && least == one.least && largest == one.largest;
  }

  @Override
  public int hashCode() {
    return child.hashCode();
  }
}
