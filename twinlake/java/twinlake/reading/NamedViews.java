package twinlake.reading;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import scala.jdk.javaapi.CollectionConverters;

/** The views of the catalog that a statement reads, as schema.name; not those that their texts read. */
public final class NamedViews {
  private NamedViews() {}

  public static List<String> of(Dataset<Row> relation) {
    return of(((org.apache.spark.sql.classic.Dataset<Row>) relation).queryExecution().analyzed());
  }

  static List<String> of(LogicalPlan analysed) {
    Set<String> found = new TreeSet<>();
    walk(analysed, found);
    return List.copyOf(found);
  }

  /** Those that the text of a statement names without a schema; none of a text whose error comes when it is run. */
  public static List<String> alone(String statement) {
    Set<String> found = new TreeSet<>();
    try {
      Trees.walk(new BoundedParser().parsePlan(statement), Integer.MAX_VALUE, node -> {
        if (node instanceof UnresolvedRelation relation) {
          List<String> name = CollectionConverters.asJava(relation.multipartIdentifier());
          if (name.size() == 1) {
            found.add(name.get(0));
          }
        }
      });
    } catch (Exception wrong) { // of the parser, which throws what Java cannot name
      return List.of();
    }
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
