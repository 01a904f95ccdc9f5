package twinlake.reading;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ShowColumns;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.List$;
import scala.jdk.javaapi.CollectionConverters;
import twinlake.lake.Seqs;

/**
 * Holds statements to the rights of who asks. Where a statement names a view of which this person sees less than all,
 * it reads the rest instead: rows that are theirs, columns without the hidden ones, masks for values. Filters, joins,
 * groups and orders stand above that, and see nothing else.
 *
 * <p>What was put in place is looked for again in the analysed plan ({@link #check}): a view without it is refused,
 * by whatever way the statement came to it.
 */
final class Protected {
  /** On what stands above a view, with the view's name. Nobody can write it in SQL. */
  private static final TreeNodeTag<String> SHOWN = new TreeNodeTag<>("twinlake.shown");
  /** On a view's name that stands below. */
  private static final TreeNodeTag<Boolean> INSIDE = new TreeNodeTag<>("twinlake.inside");

  /** What lists names as they are; {@link ShownNames} answers instead. */
  private static final Set<Class<?>> LISTS = Guards.classes(
      "ShowTables", "ShowTablesCommand", "ShowTablesExtended", "ShowViews", "ShowViewsCommand", "ShowNamespacesCommand");

  private final SparkSession session;
  private final Rights rights;
  private final SessionCatalog catalog;

  private Protected(SparkSession session, Rights rights) {
    this.session = session;
    this.rights = rights;
    catalog = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalog();
  }

  /** The plan with what this person sees for each view that it names. */
  static LogicalPlan over(SparkSession session, LogicalPlan plan) {
    Rights rights = Rights.of(session);
    if (rights.areAll()) {
      return plan;
    }
    Protected here = new Protected(session, rights);
    Trees.walk(plan, Integer.MAX_VALUE, here::checkName);
    here.checkAlone(plan);
    return plan.transformUpWithSubqueries(here.new Shown());
  }

  /** The same for the text of a reader's own temporary view; those of the catalog name none of these views. */
  static LogicalPlan within(SparkSession session, LogicalPlan text) {
    Rights rights = Rights.of(session);
    return rights.areAll() ? text : text.transformUpWithSubqueries(new Protected(session, rights).new Shown());
  }

  /** Of an analysed plan: Refused where a view is read as it is, and this person sees less. */
  static void check(SparkSession session, LogicalPlan plan) {
    Rights rights = Rights.of(session);
    if (!rights.areAll()) {
      new Protected(session, rights).check(plan, null);
    }
  }

  private void check(LogicalPlan plan, String shown) {
    if (plan instanceof View view && !view.isTempView()) {
      TableIdentifier name = view.desc().identifier();
      String schema = name.database().getOrElse(() -> "");
      if (!rights.mayRead(schema, name.table())) {
        throw noRight(schema, name.table());
      }
      if (rights.changes(name.table(), view.desc().schema()) && !full(schema, name.table()).equals(shown)) {
        throw new Refused(full(schema, name.table()), "it would be read as it is, and you may not see all of it");
      }
      return;
    }
    if (LISTS.contains(plan.getClass())) {
      throw new Refused("this list", "it has names that you may not see", "SHOW TABLES, or information_schema");
    }
    Option<String> begun = plan.getTagValue(SHOWN);
    boolean isBetween = plan instanceof Project || plan instanceof Filter || plan instanceof SubqueryAlias;
    String now = begun.isDefined() ? begun.get() : isBetween ? shown : null;
    CollectionConverters.asJava(plan.expressions()).forEach(this::check);
    CollectionConverters.asJava(plan.children()).forEach(child -> check(child, now));
    if (plan instanceof CreateViewCommand create) {
      check(create.plan(), null);
    }
  }

  private void check(Expression expression) {
    if (expression instanceof PlanExpression<?> inner && inner.plan() instanceof LogicalPlan plan) {
      check(plan, null);
    }
    CollectionConverters.asJava(expression.children()).forEach(this::check);
  }

  /** What is not theirs is not there. */
  private void checkName(TreeNode<?> node) {
    List<String> name = Names.of(node);
    if (name != null && !isTemporary(name) && !rights.mayRead(schema(name), name.get(name.size() - 1))) {
      throw noRight(schema(name), name.get(name.size() - 1));
    }
    if (node instanceof UnresolvedNamespace of) {
      checkSchema(CollectionConverters.asJava(of.multipartIdentifier()));
    }
  }

  /** What an IDENTIFIER(...) of a command stands for comes without the command, which would show all there is. */
  private void checkAlone(LogicalPlan plan) {
    List<String> name = plan instanceof UnresolvedRelation ? null : Names.of(plan);
    if (name != null && !isTemporary(name)) {
      StructType columns = columns(name);
      String view = name.get(name.size() - 1);
      if (columns != null && rights.changes(view, columns)) {
        throw notWhole(name, view);
      }
    }
  }

  private Refused notWhole(List<String> name, String view) {
    return new Refused("this command about " + full(schema(name), view), "you may not see all of it", "DESCRIBE " + view);
  }

  private void checkSchema(List<String> name) {
    String schema = name.isEmpty() ? DefaultSchema.SERVE : name.get(name.size() - 1).toLowerCase(Locale.ROOT);
    if (!new Listing(session).schemas(null).contains(schema)) {
      throw new Refused("the schema " + schema, "there is none of this name in which you may read a table");
    }
  }

  private Refused noRight(String schema, String table) {
    return new Refused(full(schema, table), "there is no such table that " + Rights.user(session) + " may read",
        "a name that SHOW TABLES lists, or ask for the right to it");
  }

  private boolean isTemporary(List<String> name) {
    return name.size() == 1 && catalog.getTempView(name.get(0)).isDefined();
  }

  private String schema(List<String> name) {
    return name.size() > 1 ? name.get(name.size() - 2) : catalog.getCurrentDatabase();
  }

  private static String full(String schema, String table) {
    return (schema + "." + table).toLowerCase(Locale.ROOT);
  }

  private final class Shown extends Rewriting {
    @Override
    LogicalPlan rewritten(LogicalPlan node) {
      if (node instanceof UnresolvedRelation relation) {
        return relation.getTagValue(INSIDE).isDefined()
            ? null : read(relation, CollectionConverters.asJava(relation.multipartIdentifier()));
      }
      for (LogicalPlan child : CollectionConverters.asJava(node.children())) {
        if (child instanceof UnresolvedTableOrView of) {
          return described(node, CollectionConverters.asJava(of.multipartIdentifier()));
        }
      }
      return null;
    }

    private LogicalPlan read(UnresolvedRelation relation, List<String> name) {
      StructType columns = columns(name);
      String view = name.get(name.size() - 1);
      if (columns == null || !Listing.isOfTables(schema(name)) || !rights.changes(view, columns)) {
        return null; // what only texts of views read is as it is, and refused anywhere else
      }
      UnresolvedRelation inside =
          new UnresolvedRelation(relation.multipartIdentifier(), relation.options(), relation.isStreaming());
      inside.setTagValue(INSIDE, true);
      LogicalPlan rows = inside;
      String condition = rights.condition(view);
      if (condition != null) {
        rows = new Filter(Masks.barrier(), new Filter(resolved(view, condition, columns), rows));
      }
      Project project = new Project(Seqs.of(shownColumns(view, columns)), rows);
      project.setTagValue(SHOWN, full(schema(name), view));
      return new SubqueryAlias(new AliasIdentifier(view, Seqs.of(List.of("spark_catalog", schema(name)))), project);
    }

    private List<NamedExpression> shownColumns(String view, StructType columns) {
      List<NamedExpression> found = new ArrayList<>();
      for (StructField one : columns.fields()) {
        if (!rights.isHidden(view, one.name())) {
          UnresolvedAttribute value = UnresolvedAttribute$.MODULE$.quoted(one.name());
          Rights.Mask mask = rights.mask(view, one.name());
          found.add(mask == Rights.Mask.NONE ? value : new Alias(
              Masks.of(mask, value, one.dataType()), one.name(), NamedExpression$.MODULE$.newExprId(),
              List$.MODULE$.empty(), Option.apply(one.metadata()), List$.MODULE$.empty()));
        }
      }
      return found;
    }

    /** DESCRIBE and SHOW COLUMNS of what this person sees; other commands would show the rest. */
    private LogicalPlan described(LogicalPlan command, List<String> name) {
      StructType columns = columns(name);
      String view = name.get(name.size() - 1);
      if (columns == null || !rights.changes(view, columns)) {
        return null;
      }
      StructType shown = rights.shown(view, columns);
      if (command instanceof ShowColumns) {
        return rows("col_name STRING", Arrays.stream(shown.fields()).map(one -> RowFactory.create(one.name())).toList());
      }
      if (command instanceof DescribeRelation) {
        return rows("col_name STRING, data_type STRING, comment STRING", Arrays.stream(shown.fields()).map(one ->
            RowFactory.create(one.name(), one.dataType().simpleString(), one.getComment().getOrElse(() -> null))).toList());
      }
      throw notWhole(name, view);
    }
  }

  /** Those of the view; null of what is no view of the catalog, of which the analysis says so. */
  private StructType columns(List<String> name) {
    if (isTemporary(name)) {
      return null;
    }
    TableIdentifier of = new TableIdentifier(name.get(name.size() - 1), Option.apply(schema(name)));
    return of(catalog, of);
  }

  /** The columns of a view of the catalog; null where there is none. */
  static StructType of(SessionCatalog catalog, TableIdentifier view) {
    try {
      return catalog.tableExists(view) ? catalog.getTableMetadata(view).schema() : null;
    } catch (NoSuchNamespaceException | NoSuchTableException gone) { // it was retired since
      return null;
    }
  }

  private Expression resolved(String view, String text, StructType columns) {
    try {
      return Conditions.resolved(session, columns, () -> parsed(view, text, columns));
    } catch (Refused refused) {
      throw refused;
    } catch (Exception wrong) { // of the analyzer
      throw unusable(view, String.valueOf(wrong.getMessage()).lines().findFirst().orElse("it has no meaning"));
    }
  }

  /** The condition names columns of the view alone: another name could be of a statement around it. */
  private Expression parsed(String view, String text, StructType columns) {
    Set<String> known = Arrays.stream(columns.fields())
        .map(one -> one.name().toLowerCase(Locale.ROOT)).collect(Collectors.toSet());
    Expression condition;
    try {
      condition = new BoundedParser().parseExpression(text);
    } catch (Exception wrong) { // Scala knows no checked exceptions
      throw unusable(view, "it cannot be read as SQL");
    }
    Trees.walk(condition, Integer.MAX_VALUE, node -> {
      if (node instanceof PlanExpression<?> || node instanceof LogicalPlan) {
        throw unusable(view, "it reads another table");
      }
      if (node instanceof UnresolvedAttribute name && !known.contains(first(name).toLowerCase(Locale.ROOT))) {
        throw unusable(view, "it names " + name.name() + ", which is no column of it");
      }
    });
    return condition;
  }

  private static String first(UnresolvedAttribute name) {
    return CollectionConverters.asJava(name.nameParts()).get(0);
  }

  private Refused unusable(String view, String why) {
    return new Refused(view, "the condition of its rows in the rights of " + Rights.user(session) + " is wrong: " + why,
        "another table until `twinlake users rights` has corrected it");
  }

  private static LogicalPlan rows(String columns, List<Row> rows) {
    return LocalRows.of(StructType.fromDDL(columns), rows);
  }
}
