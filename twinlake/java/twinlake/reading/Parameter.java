package twinlake.reading;

import java.io.Serializable;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;

/** A value that a prepared plan is given by each look-up, in the thread that computes it: no plan has it inside. */
final class Parameter extends Expression implements CodegenFallback, Serializable {
  private static final long serialVersionUID = 1L;

  /** By name, those of the look-up that this thread computes. */
  private static final ThreadLocal<Map<String, Object>> GIVEN = new ThreadLocal<>();

  private final String name;
  private final DataType type;

  Parameter(String name, DataType type) {
    this.name = name;
    this.type = type;
  }

  static void give(Map<String, Object> values) {
    GIVEN.set(values);
  }

  static void forget() {
    GIVEN.remove();
  }

  /** The expression with the values of now, and what they make constant computed. */
  static Expression bound(Expression expression) {
    return (Expression) expression.transformUp(new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(Expression part) {
        return part instanceof Parameter || part.foldable() && !(part instanceof Literal);
      }

      @Override
      public Expression apply(Expression part) {
        return new Literal(part.eval(InternalRow.empty()), part.dataType());
      }
    });
  }

  @Override
  public Object eval(InternalRow row) {
    Map<String, Object> given = GIVEN.get();
    if (given == null || !given.containsKey(name)) {
      throw new IllegalStateException("nobody has given " + name);
    }
    return given.get(name);
  }

  @Override
  @SuppressWarnings({"unchecked", "rawtypes"})
  public Seq<Expression> children() {
    return (Seq) Nil$.MODULE$;
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> none) {
    return this;
  }

  @Override
  public boolean foldable() {
    return false;
  }

  @Override
  public DataType dataType() {
    return type;
  }

  @Override
  public boolean nullable() {
    return true;
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return CodegenFallback.super.doGenCode(context, code);
  }

  @Override
  public String toString() {
    return "given(" + name + ")";
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int number) {
    return number == 0 ? name : type;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Parameter;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Parameter one && name.equals(one.name) && type.equals(one.type);
  }

  @Override
  public int hashCode() {
    return name.hashCode();
  }
}
