package twinlake.lake;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThan;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MicrosToTimestamp;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import org.apache.spark.sql.catalyst.expressions.UnixMicros;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.TimestampType;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.FunctionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Whoever filters by one time filters by another one that lies near it: of rows with {@code start <= tile AND
 * unix_micros(start) > unix_micros(tile) - N}, a range of starts is a range of tiles. Spark pushes that below an
 * explode and to the scan, and finds it out for equal columns alone.
 *
 * <p>What is added follows from what is there, so that no answer changes.
 */
public final class Ranges extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectOptimizerRule(FunctionConverters.asScalaFromFunction(session -> new Near()));
    return BoxedUnit.UNIT;
  }

  private static final class Near extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      return (LogicalPlan) plan.transform(new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
        @Override
        public boolean isDefinedAt(LogicalPlan part) {
          return part instanceof Filter;
        }

        @Override
        public LogicalPlan apply(LogicalPlan part) {
          return widened((Filter) part);
        }
      });
    }
  }

  private static Filter widened(Filter filter) {
    List<Expression> conditions = new ArrayList<>();
    split(filter.condition(), conditions);
    Expression all = filter.condition();
    for (Expression one : conditions) {
      Link link = Link.of(one, conditions);
      for (Expression condition : link == null ? List.<Expression>of() : conditions) {
        List<Expression> found = new ArrayList<>();
        split(link.implied(condition), found);
        for (Expression more : found) {
          if (conditions.stream().noneMatch(more::semanticEquals) && !filter.child().constraints().contains(more)) {
            all = new And(all, more);
          }
        }
      }
    }
    return all == filter.condition() ? filter : new Filter(all, filter.child());
  }

  private static void split(Expression condition, List<Expression> parts) {
    if (condition instanceof And both) {
      split(both.left(), parts);
      split(both.right(), parts);
    } else if (condition != null) {
      parts.add(condition);
    }
  }

  /** `start <= tile < start + micros`. */
  private record Link(Attribute start, Attribute tile, long micros) {
    /** What the condition says of the two, the other half of which is among the others; null where it is another one. */
    static Link of(Expression condition, List<Expression> others) {
      if (condition instanceof GreaterThan greater
          && greater.left() instanceof UnixMicros left && left.child() instanceof Attribute start
          && greater.right() instanceof Subtract minus
          && minus.left() instanceof UnixMicros right && right.child() instanceof Attribute tile
          && minus.right() instanceof Literal length && length.value() instanceof Long micros
          && others.stream().anyMatch(new LessThanOrEqual(start, tile)::semanticEquals)) {
        return new Link(start, tile, micros);
      }
      return null;
    }

    /** What holds for the tile where the condition holds for the start; null where nothing is known of it. */
    Expression implied(Expression condition) {
      if (condition instanceof And both) {
        Expression left = implied(both.left());
        Expression right = implied(both.right());
        return left == null ? right : right == null ? left : new And(left, right);
      }
      if (condition instanceof Or either) {
        Expression left = implied(either.left());
        Expression right = implied(either.right());
        return left == null || right == null ? null : new Or(left, right);
      }
      if (condition instanceof In in && in.value().semanticEquals(start)) {
        return ofValues(CollectionConverters.asJava(in.list()).stream()
            .map(one -> one instanceof Literal literal ? literal.value() : one).toList());
      }
      if (condition instanceof InSet in && in.child().semanticEquals(start)) {
        return ofValues(new ArrayList<>(CollectionConverters.asJava(in.hset())));
      }
      if (!(condition instanceof BinaryComparison compared)) {
        return null;
      }
      boolean isTurned = compared.right().semanticEquals(start);
      Expression value = isTurned ? compared.left() : compared.right();
      Expression of = isTurned ? compared.right() : compared.left();
      if (!of.semanticEquals(start) || !(value.dataType() instanceof TimestampType)
          || !value.references().isEmpty() || !value.deterministic()) {
        return null;
      }
      Expression from = new GreaterThanOrEqual(tile, value);
      Expression to = before(value);
      if (condition instanceof EqualTo || condition instanceof EqualNullSafe) {
        return to == null ? from : new And(from, to);
      }
      boolean isGreater = condition instanceof GreaterThan || condition instanceof GreaterThanOrEqual;
      boolean isLess = condition instanceof LessThan || condition instanceof LessThanOrEqual;
      return (isTurned ? isLess : isGreater) ? from : (isTurned ? isGreater : isLess) ? to : null;
    }

    /** Null where one of them is no time that is known; NULL is equal to nothing. */
    private Expression ofValues(List<Object> values) {
      List<Object> known = values.stream().filter(one -> one != null).toList();
      if (known.isEmpty() || !known.stream().allMatch(Long.class::isInstance)) {
        return null;
      }
      long first = known.stream().mapToLong(one -> (Long) one).min().getAsLong();
      long last = known.stream().mapToLong(one -> (Long) one).max().getAsLong();
      Expression from = new GreaterThanOrEqual(tile, new Literal(first, DataTypes.TimestampType));
      Expression to = before(new Literal(last, DataTypes.TimestampType));
      return to == null ? from : new And(from, to);
    }

    /** The tile is before the value and so much more; null at the end of all time. */
    private Expression before(Expression value) {
      if (!(value instanceof Literal literal)) {
        Expression later = new Add(new UnixMicros(value), new Literal(micros, DataTypes.LongType));
        return new LessThan(tile, new MicrosToTimestamp(later));
      }
      if (!(literal.value() instanceof Long at) || at > Long.MAX_VALUE - micros) {
        return null;
      }
      return new LessThan(tile, new Literal(at + micros, DataTypes.TimestampType));
    }
  }
}
