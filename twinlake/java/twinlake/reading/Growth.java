package twinlake.reading;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.analysis.Star;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.Cube;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GroupingSets;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.Rollup;
import org.apache.spark.sql.catalyst.expressions.WindowSpecDefinition;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What a short text becomes when it is analysed: {@code SELECT *, *} over itself doubles its columns each time, a name
 * of a WITH that is used twice its plan, a CUBE its groups. It is reckoned before, as what it becomes would be too much.
 */
final class Growth {
  private static final double MOST_COLUMNS = 40_000;
  private static final double MOST_NODES = 50_000;
  private static final double MOST_GROUPINGS = 256;
  /** Spark plans each below all others, and takes time by the third power of their number. */
  private static final int MOST_WINDOWS = 50;
  /** Of a view, which is not looked up for this. */
  private static final double COLUMNS_OF_VIEW = 1_000;

  private record Size(double columns, double nodes) {}

  private Growth() {}

  static void check(LogicalPlan parsed) {
    of(parsed, Map.of());
  }

  /** Counts the windows of the nodes that it is given. */
  static Consumer<TreeNode<?>> windows() {
    Set<List<?>> seen = new HashSet<>();
    return node -> {
      if (node instanceof WindowSpecDefinition window) {
        seen.add(List.of(window.partitionSpec(), window.orderSpec()));
        require(seen.size() <= MOST_WINDOWS, "a statement of more than " + MOST_WINDOWS + " different windows");
      }
    };
  }

  private static Size of(LogicalPlan plan, Map<String, Size> named) {
    if (plan instanceof UnresolvedRelation relation) {
      var name = CollectionConverters.asJava(relation.multipartIdentifier());
      Size known = name.size() == 1 ? named.get(name.get(0).toLowerCase(Locale.ROOT)) : null;
      return known == null ? new Size(COLUMNS_OF_VIEW, 1) : known;
    }
    if (plan instanceof UnresolvedWith with) {
      Map<String, Size> more = new HashMap<>(named);
      for (var one : CollectionConverters.asJava(with.cteRelations())) {
        more.put(one._1().toLowerCase(Locale.ROOT), of(one._2(), more));
      }
      return of(with.child(), more);
    }
    double columns = 0;
    double nodes = 1;
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      Size size = of(child, named);
      columns += size.columns;
      nodes += size.nodes;
    }
    for (Expression expression : CollectionConverters.asJava(plan.expressions())) {
      nodes += ofSubqueries(expression, named);
    }
    if (plan instanceof Project project) {
      columns = selected(CollectionConverters.asJava(project.projectList()), columns);
    } else if (plan instanceof Aggregate aggregate) {
      columns = selected(CollectionConverters.asJava(aggregate.aggregateExpressions()), columns);
      double sets = 1;
      for (Expression grouping : CollectionConverters.asJava(aggregate.groupingExpressions())) {
        sets *= groupings(grouping);
      }
      require(sets <= MOST_GROUPINGS, "a GROUP BY of more than " + (int) MOST_GROUPINGS + " grouping sets");
    }
    require(columns <= MOST_COLUMNS, "a statement of more than 40000 columns");
    require(nodes <= MOST_NODES, "a statement that repeats what WITH names to more than 50000 steps");
    return new Size(columns, nodes);
  }

  private static double ofSubqueries(Expression expression, Map<String, Size> named) {
    double nodes = expression instanceof PlanExpression<?> inner && inner.plan() instanceof LogicalPlan plan
        ? of(plan, named).nodes : 0;
    for (Expression child : CollectionConverters.asJava(expression.children())) {
      nodes += ofSubqueries(child, named);
    }
    return nodes;
  }

  private static double selected(List<?> items, double columns) {
    return items.stream().mapToDouble(item -> item instanceof Star ? Math.max(1, columns) : 1).sum();
  }

  private static double groupings(Expression grouping) {
    if (grouping instanceof Cube cube) {
      return Math.pow(2, size(cube.groupingSetIndexes()));
    }
    if (grouping instanceof Rollup rollup) {
      return size(rollup.groupingSetIndexes()) + 1;
    }
    return grouping instanceof GroupingSets sets ? Math.max(1, size(sets.groupingSetIndexes())) : 1;
  }

  private static int size(Seq<?> of) {
    return CollectionConverters.asJava(of).size();
  }

  private static void require(boolean holds, String what) {
    if (!holds) {
      throw BoundedParser.tooMuch(what);
    }
  }
}
