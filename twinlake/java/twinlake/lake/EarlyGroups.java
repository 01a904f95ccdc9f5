package twinlake.lake;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.GenerateExec;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.aggregate.ObjectHashAggregateExec;
import org.apache.spark.sql.execution.aggregate.SortAggregateExec;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.joins.BaseJoinExec;
import scala.collection.immutable.Seq;
import scala.collection.immutable.Vector$;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.FunctionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Where Spark sorts rows to aggregate them in part, as it does for the greatest struct of each group, and for sketches
 * once there are 128 groups, they are grouped by hash instead ({@link HashedGroups}); what is left, a row a group, is
 * sorted where whoever is above wants an order. Plans and answers are otherwise those of Spark.
 */
public final class EarlyGroups extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  /** How many bytes the groups of one aggregate of a task may take; 0 leaves plans as Spark makes them. */
  static final String BYTES = "spark.twinlake.groupBytes";
  private static final String MEASURED = "64m";

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectColumnar(FunctionConverters.asScalaFromFunction(session -> new Planned()));
    return BoxedUnit.UNIT;
  }

  /** The last look at a plan: by then every sort is in it. */
  private static final class Planned extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return new Unsorted();
    }
  }

  private static final class Unsorted extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      String size = conf().getConfString(BYTES, MEASURED);
      return (SparkPlan) plan.transformUp(new AbstractPartialFunction<SparkPlan, SparkPlan>() {
        @Override
        public boolean isDefinedAt(SparkPlan part) {
          return true;
        }

        @Override
        public SparkPlan apply(SparkPlan part) {
          return regrouped(part, size);
        }
      });
    }
  }

  /** The same plan where none of its children is grouped otherwise. */
  private static SparkPlan regrouped(SparkPlan part, String size) {
    List<Seq<SortOrder>> orders = CollectionConverters.asJava(part.requiredChildOrdering());
    List<SparkPlan> children = new ArrayList<>(CollectionConverters.asJava(part.children()));
    boolean isOther = false;
    for (int one = 0; one < children.size(); one++) {
      SparkPlan rows = rowsOf(children.get(one));
      long bytes = rows == null ? 0 : bytes(size);
      if (bytes > 0) {
        SparkPlan grouped = HashedGroups.of((BaseAggregateExec) children.get(one), rows, bytes);
        boolean isOrdered = !CollectionConverters.asJava(orders.get(one)).isEmpty();
        children.set(one, isOrdered ? new SortExec(orders.get(one), false, grouped, 0) : grouped);
        isOther = true;
      }
    }
    return isOther ? (SparkPlan) part.withNewChildren(Vector$.MODULE$.from(CollectionConverters.asScala(children))) : part;
  }

  private static long bytes(String size) {
    try {
      return JavaUtils.byteStringAsBytes(size.strip());
    } catch (NumberFormatException error) {
      throw new IllegalArgumentException(BYTES + " is a size like 64m, or 0 for Spark's own plans, not " + size, error);
    }
  }

  /** The rows of which it is the parts, as they come; null where it is something else, or its rows have to be sorted. */
  private static SparkPlan rowsOf(SparkPlan plan) {
    if (!(plan instanceof BaseAggregateExec parts) || parts.isStreaming() || !HashedGroups.can(parts)) {
      return null;
    }
    if (plan instanceof ObjectHashAggregateExec hashed) { // it has no program either, whatever its rows are made of
      return hashed.child();
    }
    int keys = CollectionConverters.asJava(parts.groupingExpressions()).size();
    return plan instanceof SortAggregateExec sorted && sorted.child() instanceof SortExec sort && !sort.global()
        && CollectionConverters.asJava(sort.sortOrder()).size() == keys && !multipliesRows(sort.child()) ? sort.child() : null;
  }

  /**
   * Whether a row may become any number of rows before they are exchanged. A sort in the same program takes those one by
   * one; for a node without a program Spark collects them in memory.
   */
  private static boolean multipliesRows(SparkPlan plan) {
    boolean isJoined = plan instanceof BaseJoinExec join
        && join.joinType() != LeftSemi$.MODULE$ && join.joinType() != LeftAnti$.MODULE$;
    return isJoined || plan instanceof GenerateExec || !(plan instanceof Exchange)
        && CollectionConverters.asJava(plan.children()).stream().anyMatch(EarlyGroups::multipliesRows);
  }
}
