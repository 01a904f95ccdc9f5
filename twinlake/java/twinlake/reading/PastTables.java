package twinlake.reading;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.FunctionConverters;
import twinlake.lake.Seqs;

/**
 * Tables as they were: a statement that is asked AS OF a moment finds, under their names in `serve`, the views of a
 * schema that the follower's session has made for that moment. States whose commits are gone are plans over the log.
 */
public final class PastTables {
  /** The table function, of a name, by which the texts of views read a plan that is kept here. */
  public static final String FUNCTION = "twinlake_past";

  private static final String SERVE = DefaultSchema.SERVE;
  private static final Map<String, Supplier<LogicalPlan>> PLANS = new ConcurrentHashMap<>();

  /** The schema for the statements of this thread; none for one that reads what is live. */
  private static final ThreadLocal<String> SCHEMA = new ThreadLocal<>();

  private PastTables() {}

  /** This session, and those that are made from now on, know the function; a view may not name one of an extension. */
  public static void register(SparkSession session) {
    var state = ((org.apache.spark.sql.classic.SparkSession) session).sessionState();
    for (TableFunctionRegistry registry : List.of(TableFunctionRegistry.builtin(), state.tableFunctionRegistry())) {
      registry.registerFunction(
          new FunctionIdentifier(FUNCTION), new ExpressionInfo(PastTables.class.getName(), FUNCTION),
          FunctionConverters.asScalaFromFunction(
              name -> plan(CollectionConverters.asJava(name).get(0).eval(null).toString())));
    }
  }

  /** Views may read this relation by the name from now on. */
  public static void keep(String name, Dataset<Row> relation) {
    LogicalPlan plan = ((org.apache.spark.sql.classic.Dataset<Row>) relation).queryExecution().analyzed();
    PLANS.put(name, () -> plan);
  }

  /** The same of a Delta table at the version that these actions tell: metaData and add, one a line. */
  public static void keepFiles(String name, String path, String actions) throws IOException {
    LiveFiles files = LiveTable.fixed(path, actions);
    PLANS.put(name, () -> files.relation(SparkSession.active()));
  }

  /** Forgets the plans whose names begin so. */
  public static void drop(String prefix) {
    PLANS.keySet().removeIf(name -> name.startsWith(prefix));
  }

  /** The statements of this thread read `serve` in this schema; null for the live one. */
  public static void bind(String schema) {
    SCHEMA.set(schema);
  }

  /** What a reader's statement reads, by their rights, as a relation of the session that owns the views. */
  public static Dataset<Row> owned(SparkSession owner, Dataset<Row> read) {
    var plan = ((org.apache.spark.sql.classic.Dataset<Row>) read).queryExecution().analyzed();
    return org.apache.spark.sql.classic.Dataset.ofRows((org.apache.spark.sql.classic.SparkSession) owner, plan);
  }

  static boolean isBound() {
    return SCHEMA.get() != null;
  }

  /** The plan, with names of the bound schema for those of `serve`; nothing of now is read beside them. */
  static LogicalPlan bound(LogicalPlan plan) {
    String schema = SCHEMA.get();
    return schema == null ? plan : plan.transformUpWithSubqueries(new Renaming(schema));
  }

  private static LogicalPlan plan(String name) {
    Supplier<LogicalPlan> found = PLANS.get(name);
    if (found == null) {
      throw new Refused("a relation that is not a view", Names.WHY);
    }
    return found.get();
  }

  private static final class Renaming extends Rewriting {
    private final String schema;

    Renaming(String schema) {
      this.schema = schema;
    }

    @Override
    LogicalPlan rewritten(LogicalPlan node) {
      return node instanceof UnresolvedRelation relation && !schemaOf(relation).equals(schema) ? renamed(relation) : null;
    }

    private LogicalPlan renamed(UnresolvedRelation relation) {
      List<String> name = CollectionConverters.asJava(relation.multipartIdentifier());
      if (!schemaOf(relation).equalsIgnoreCase(SERVE)) {
        throw new Refused(String.join(".", name), "AS OF is about the views in serve, and this one is of now");
      }
      String table = name.get(name.size() - 1);
      var past = new UnresolvedRelation(Seqs.of(List.of(schema, table)), relation.options(), relation.isStreaming());
      return new SubqueryAlias(new AliasIdentifier(table, Seqs.of(List.of(SERVE))), past);
    }

    /** A name alone is one of the schema that a reader begins in: each statement AS OF has a session of its own. */
    private static String schemaOf(UnresolvedRelation relation) {
      List<String> name = CollectionConverters.asJava(relation.multipartIdentifier());
      return name.size() > 1 ? name.get(name.size() - 2) : SERVE;
    }
  }
}
