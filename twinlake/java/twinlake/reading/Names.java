package twinlake.reading;

import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Refuses names of files before anything looks at them: to resolve {@code xml.`path`} opens the file, and its options.
 * Where a statement is asked AS OF a moment, the names stand for the views of that moment, see {@link PastTables}; and
 * for what their reader may see of them, see {@link Protected}.
 *
 * <p>Spark runs rules about hints before it resolves relations, for what an IDENTIFIER(...) stands for as well.
 */
final class Names extends Rule<LogicalPlan> {
  static final String WHY = "files and tables are reached through the views only";
  private final SparkSession session;

  Names(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (ReadOnly.isOwnerSession(session)) {
      return plan;
    }
    if (ReadOnly.isTextOfView()) {
      return Protected.within(session, plan);
    }
    LogicalPlan answered = InformationSchema.answered(session, plan);
    Trees.walk(answered, Integer.MAX_VALUE, this::check);
    return Protected.over(session, PastTables.bound(answered));
  }

  /** The name that a node has of a table or view, part by part; null of one that names none. */
  static List<String> of(TreeNode<?> node) {
    Seq<String> name = node instanceof UnresolvedRelation relation ? relation.multipartIdentifier()
        : node instanceof UnresolvedTable table ? table.multipartIdentifier()
        : node instanceof UnresolvedTableOrView either ? either.multipartIdentifier() : null;
    return name == null ? null : CollectionConverters.asJava(name);
  }

  private void check(TreeNode<?> node) {
    List<String> name = of(node);
    if (name != null) {
      checkName(name);
    }
    if (node instanceof UnresolvedRelation relation) {
      if (relation.options().containsKey(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES())) { // Spark's, of a target
        throw new Refused(
            "a statement that writes", "the views belong to the release log and the tables to the lake server");
      }
      if (!relation.options().isEmpty()) {
        throw new Refused("WITH (...) of a relation", "its options belong to files, and " + WHY);
      }
    } else if (node instanceof UnresolvedTableValuedFunction function
        && !Functions.isTableFunction(CollectionConverters.asJava(function.name()))) {
      throw new Refused(String.join(".", CollectionConverters.asJava(function.name())), WHY);
    } else if (node instanceof LogicalPlan && node.getClass().getName().contains(".delta.")) {
      throw new Refused(node.getClass().getSimpleName(), WHY);
    }
  }

  private void checkName(List<String> name) {
    int parts = name.size();
    if (parts < 2) {
      return;
    }
    boolean ofCatalog = parts == 2 || parts == 3 && name.get(0).equalsIgnoreCase("spark_catalog");
    SessionCatalog catalog = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalog();
    if (!ofCatalog || !catalog.databaseExists(name.get(parts - 2))) {
      String schema = String.join(".", name.subList(0, parts - 1));
      String near = ofCatalog ? NearNames.nearest(name.get(parts - 2), new Listing(session).schemas(null)) : "";
      throw new Refused(
          name.get(parts - 1) + " of " + schema,
          "there is no schema " + schema + (near.isEmpty() ? "" : " (did you mean " + near + "?)") + ", and " + WHY);
    }
  }
}
