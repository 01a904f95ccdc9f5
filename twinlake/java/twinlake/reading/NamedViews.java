package twinlake.reading;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import scala.jdk.javaapi.CollectionConverters;

/** The views of the catalog that a statement reads, as schema.name; not those that their texts read. */
public final class NamedViews {
  private NamedViews() {}

  public static List<String> of(Dataset<Row> relation) {
    Set<String> found = new TreeSet<>();
    walk(((org.apache.spark.sql.classic.Dataset<Row>) relation).queryExecution().analyzed(), found);
    return List.copyOf(found);
  }

  private static void walk(LogicalPlan plan, Set<String> found) {
    if (plan instanceof View view && !view.isTempView()) {
      TableIdentifier name = view.desc().identifier();
      found.add((name.database().isDefined() ? name.database().get() + "." : "") + name.table());
      return;
    }
    CollectionConverters.asJava(plan.expressions()).forEach(one -> walk(one, found));
    CollectionConverters.asJava(plan.children()).forEach(one -> walk(one, found));
  }

  private static void walk(Expression expression, Set<String> found) {
    if (expression instanceof PlanExpression<?> inner && inner.plan() instanceof LogicalPlan plan) {
      walk(plan, found);
    }
    CollectionConverters.asJava(expression.children()).forEach(one -> walk(one, found));
  }
}
