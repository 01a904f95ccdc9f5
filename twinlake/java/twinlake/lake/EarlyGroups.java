package twinlake.lake;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.SortAggregateExec;
import scala.collection.immutable.Seq;
import scala.collection.immutable.Vector$;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.FunctionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Where Spark sorts all rows to aggregate them in part, as it does for the greatest struct of each group, they are
 * grouped by hash instead ({@link HashedGroups}); what is left, a row a group, is sorted as before. Plans and answers
 * are otherwise those of Spark.
 */
public final class EarlyGroups extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  /** A setting of a session: how many bytes the groups of a task may take; 0 leaves plans as Spark makes them. */
  static final String BYTES = "spark.twinlake.groupBytes";
  private static final String MEASURED = String.valueOf(64 << 20);

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
      long bytes = Long.parseLong(conf().getConfString(BYTES, MEASURED));
      return bytes == 0 ? plan : (SparkPlan) plan.transformUp(new AbstractPartialFunction<SparkPlan, SparkPlan>() {
        @Override
        public boolean isDefinedAt(SparkPlan part) {
          return CollectionConverters.asJava(part.children()).stream().anyMatch(EarlyGroups::isSorted);
        }

        @Override
        public SparkPlan apply(SparkPlan part) {
          return over(part, bytes);
        }
      });
    }
  }

  private static SparkPlan over(SparkPlan part, long bytes) {
    List<Seq<SortOrder>> orders = CollectionConverters.asJava(part.requiredChildOrdering());
    List<SparkPlan> children = new ArrayList<>();
    for (SparkPlan child : CollectionConverters.asJava(part.children())) {
      Seq<SortOrder> order = orders.get(children.size());
      SparkPlan grouped = isSorted(child) ? HashedGroups.of((SortAggregateExec) child, bytes) : child;
      children.add(grouped == child || CollectionConverters.asJava(order).isEmpty() ? grouped : new SortExec(order, false, grouped, 0));
    }
    return (SparkPlan) part.withNewChildren(Vector$.MODULE$.from(CollectionConverters.asScala(children)));
  }

  private static boolean isSorted(SparkPlan plan) {
    return plan instanceof SortAggregateExec aggregate && !aggregate.isStreaming()
        && aggregate.child() instanceof SortExec sort && !sort.global()
        && CollectionConverters.asJava(sort.sortOrder()).size()
            == CollectionConverters.asJava(aggregate.groupingExpressions()).size()
        && CollectionConverters.asJava(aggregate.aggregateExpressions()).stream().allMatch(HashedGroups::can);
  }
}
