package twinlake.reading;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.types.StringType;
import scala.jdk.javaapi.CollectionConverters;

/** A reader's statement with a plan that computes its rows in the calling thread, for as long as its views are what they are. */
final class PreparedStatement {
  private static final long MOST_BYTES = 4L << 20;
  private static final int MOST_COLUMNS = 200;

  /** For fewer a program costs more than it saves, unless it is run again. */
  private static final long FEW_ROWS = 20_000;

  /** What Spark makes a time of: of a text's as soon as it is parsed, of others as soon as a statement is planned. */
  private static final String TIMES = "(?:now|today|tomorrow|yesterday)";
  private static final Pattern IN_TEXT = Pattern.compile("['\"]\\s*" + TIMES, Pattern.CASE_INSENSITIVE);
  private static final Pattern NOW = Pattern.compile(TIMES + ".*", Pattern.DOTALL);

  private final SessionCatalog catalog;
  private final Map<TableIdentifier, CatalogTable> views = new HashMap<>();
  private final List<String> named;
  private final PreparedRows rows;
  private boolean lasts = true;
  private final ArrayNode columns = JsonNodeFactory.instance.arrayNode();

  private PreparedStatement(SparkSession session, LogicalPlan parsed, int limit, boolean isForOnce) {
    var state = ((org.apache.spark.sql.classic.SparkSession) session).sessionState();
    SparkSession.setActiveSession(session);
    catalog = state.catalog();
    LogicalPlan[] analysed = new LogicalPlan[1];
    var tables = LiveTable.prepared(PreparedScan.MOST_ROWS, () -> analysed[0] = state.analyzer().executeAndCheck(parsed, Ending.tracker()));
    refuseOthers(analysed[0]);
    refuseColumns(analysed[0]);
    look(analysed[0]);
    named = NamedViews.of(analysed[0]);
    for (Attribute one : CollectionConverters.asJava(analysed[0].output())) {
      columns.addObject().put("name", one.name()).put("type", one.dataType().simpleString());
    }
    rows = new PreparedRows(session, analysed[0], plan -> plan, limit, () -> {
      long scanned = tables.values().stream().mapToLong(PreparedFiles::scanned).sum();
      return (isForOnce || !lasts) && scanned <= FEW_ROWS ? PreparedRows.INTERPRETED : Map.of();
    });
  }

  private void look(TreeNode<?> root) {
    lasts &= !root.containsPattern(TreePattern.CURRENT_LIKE());
    Trees.walk(root, Integer.MAX_VALUE, node -> {
      if (node instanceof View view && !PreparedRows.isClock(view)) {
        views.put(view.desc().identifier(), view.desc());
        lasts &= !IN_TEXT.matcher(view.desc().viewText().getOrElse(() -> "")).find();
      } else if (node instanceof Expression one) {
        refuseChance(one);
        lasts &= !(one instanceof Cast cast && isNow(cast));
        if (one instanceof RuntimeReplaceable replaced) {
          look(replaced.replacement()); // which is none of its children
        }
      } else if (node instanceof Sample) {
        throw new UnsupportedOperationException("a sample is drawn each time");
      }
    });
  }

  /**
   * By the rights of a user who sees everything; what is `isForOnce` is not run again. IllegalArgumentException,
   * UnsupportedOperationException or MatchError of what tasks compute; and whatever the analyzer says of a statement
   * that is wrong.
   */
  static PreparedStatement of(SparkSession owner, String user, LogicalPlan parsed, int limit, boolean isForOnce) {
    return new PreparedStatement(DefaultSchema.begin(owner, user), parsed, limit, isForOnce);
  }

  /** Beside views there are relations that the analyzer fills itself, with names or reports of now. */
  private static void refuseOthers(LogicalPlan plan) {
    if (plan instanceof View view && !view.isTempView()) {
      return;
    }
    List<LogicalPlan> children = CollectionConverters.asJava(plan.children());
    if (children.isEmpty() && !(plan instanceof OneRowRelation || plan instanceof Range || plan instanceof CTERelationRef)) {
      throw new UnsupportedOperationException("it reads " + plan.nodeName());
    }
    children.forEach(PreparedStatement::refuseOthers);
    CollectionConverters.asJava(plan.expressions()).forEach(PreparedStatement::refuseOthers);
  }

  private static void refuseOthers(Expression expression) {
    if (expression instanceof PlanExpression<?> inner && inner.plan() instanceof LogicalPlan plan) {
      refuseOthers(plan);
    }
    CollectionConverters.asJava(expression.children()).forEach(PreparedStatement::refuseOthers);
  }

  /** Spark's way says of them why they are not sent. */
  private static void refuseColumns(LogicalPlan plan) {
    List<Attribute> columns = CollectionConverters.asJava(plan.output());
    for (Attribute one : columns) {
      if (one.dataType().simpleString().contains("interval")) {
        throw new UnsupportedOperationException(one.name() + " is an interval");
      }
    }
    if (columns.size() > MOST_COLUMNS) {
      throw new UnsupportedOperationException("it has more than " + MOST_COLUMNS + " columns");
    }
  }

  /** Seeds are drawn when a statement is analysed. */
  private static void refuseChance(Expression one) {
    if (!one.deterministic() && !(one instanceof AggregateFunction)
        && CollectionConverters.asJava(one.children()).stream().allMatch(Expression::deterministic)) {
      throw new UnsupportedOperationException(one.prettyName() + " is another one each time");
    }
  }

  private static boolean isNow(Cast cast) {
    if (!(cast.child().dataType() instanceof StringType) || !cast.child().foldable() || cast.dataType() instanceof StringType) {
      return false;
    }
    try {
      return NOW.matcher(String.valueOf(cast.child().eval(null)).strip().toLowerCase(Locale.ROOT)).matches();
    } catch (RuntimeException unknown) { // an expression that Spark replaces before it computes anything
      return true;
    }
  }

  /** Whether its plan has no time of its own, and is right as long as its views {@link #holds}. */
  boolean lasts() {
    return lasts;
  }

  /** Whether its views are those that it was analysed over; to be asked where nobody alters them. */
  boolean holds() {
    return views.entrySet().stream().allMatch(one -> Objects.equals(now(one.getKey()), one.getValue()));
  }

  private CatalogTable now(TableIdentifier view) {
    try {
      return catalog.getTableMetadata(view);
    } catch (Exception gone) { // Scala knows no checked exceptions
      if (gone instanceof NoSuchTableException || gone instanceof NoSuchNamespaceException) {
        return null;
      }
      throw BoundedParser.<RuntimeException>unchecked(gone);
    }
  }

  /** The rows as an Arrow stream, in the head their columns and the views that the statement names; null where they are large. */
  byte[] run(ObjectNode head) {
    head.set("columns", columns);
    named.forEach(head.putArray("views")::add);
    return LiveTable.atOneVersion(() -> rows.run(Map.of(), MOST_BYTES));
  }
}
