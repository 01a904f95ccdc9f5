package twinlake.reading;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.analysis.LocalTempView$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.execution.command.SetCommand;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.FunctionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * What a reader may ask: an allow-list over the analysed plan, for every session but the one that keeps the views.
 *
 * <p>Spark applies the rule to each plan once its names are resolved and before anything of it runs, so it does not
 * matter how a statement was written (EXECUTE IMMEDIATE, IDENTIFIER(...), a plan without text). A relation stands
 * only below a view of the catalog, and those only the excepted session makes.
 */
public final class ReadOnly extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  private static final Set<String> NODES = Set.of(
      "Aggregate", "AsOfJoin", "CTERelationDef", "CTERelationRef", "Deduplicate", "DeserializeToObject", "Distinct", "EmptyRelation",
      "Except", "Expand", "Filter", "Generate", "GlobalLimit", "Intersect", "Join", "LateralJoin", "LocalLimit",
      "LocalRelation", "Offset", "OneRowRelation", "PipeOperator", "Pivot", "Project", "Range", "RebalancePartitions",
      "Repartition", "RepartitionByExpression", "ResolvedHint", "ReturnAnswer", "Sample", "Sort", "Subquery",
      "SubqueryAlias", "Tail", "Transpose", "Union", "UnionLoop", "UnionLoopRef", "Unpivot", "View", "Window",
      "WindowGroupLimit", "WithCTE", "WithWindowDefinition");

  /** Commands that only tell, or change nothing but the reader's own session. */
  private static final Set<String> COMMANDS = Set.of(
      "CreateVariable", "DescribeColumn", "DescribeColumnCommand", "DescribeDatabaseCommand", "DescribeFunction",
      "DescribeFunctionCommand", "DescribeNamespace", "DescribeQueryCommand", "DescribeRelation",
      "DescribeRelationJsonCommand", "DescribeTableCommand", "DropTempViewCommand", "DropVariable",
      "ExplainCommand", "MultiResult", "CommandResult", "ResetCommand", "SetCatalogAndNamespace",
      "SetNamespaceCommand", "SetVariable", "ShowCatalogsCommand", "ShowColumns", "ShowColumnsCommand",
      "ShowCreateTable", "ShowCreateTableCommand", "ShowCurrentNamespaceCommand", "ShowFunctions",
      "ShowFunctionsCommand", "ShowNamespaces", "ShowNamespacesCommand", "ShowTableProperties",
      "ShowTablePropertiesCommand", "ShowTables", "ShowTablesCommand", "ShowTablesExtended", "ShowViews",
      "ShowViewsCommand");

  /** What commands name, resolved: things of the catalog. ResolvedTable is missing, it may be a path. */
  private static final Set<String> NAMED = Set.of(
      "ResolvedIdentifier", "ResolvedNamespace", "ResolvedNonPersistentFunc", "ResolvedPersistentFunc",
      "ResolvedPersistentView", "ResolvedTempView");

  private static final Set<String> RELATIONS = Set.of(
      "DataSourceV2Relation", "LogicalRelation", "ResolvedTable", "StreamingRelation", "StreamingRelationV2");

  /** The settings a reader may change; the others are the server's. */
  private static final Set<String> SETTINGS = Set.of(
      "spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.shuffle.partitions");

  /** What JDBC's driver and server set for every connection. */
  private static final Set<String> CONNECTIONS_OWN = Set.of(
      HiveSettings.DRIVERS_OWN, "spark.sql.binaryOutputStyle", "spark.sql.datetime.java8API.enabled");

  private static final String MAY_SET = "a reader may set " + String.join(", ", SETTINGS.stream().sorted().toList());

  /** Functions that run code, or read what their arguments name, some of them before any rule sees them. */
  private static final List<String> FUNCTIONS = List.of(
      "java_method", "reflect", "try_reflect", "from_avro", "to_avro", "schema_of_avro", "from_protobuf",
      "to_protobuf", "from_xml", "schema_of_xml");

  private static final String VIEW_RESOLUTION = "org.apache.spark.sql.catalyst.analysis.ViewResolution$";

  private static volatile SparkSession keeper;

  /** From now on every session but this one, which keeps the views, only reads; once. */
  public static synchronized void restrictOthers(SparkSession session) {
    if (keeper != null) {
      throw new IllegalStateException("a session keeps the views already");
    }
    SealedProperties.seal();
    HiveSettings.restrict();
    FUNCTIONS.forEach(name -> FunctionRegistry.builtin().dropFunction(new FunctionIdentifier(name)));
    keeper = session;
  }

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectCheckRule(FunctionConverters.asScalaFromFunction(
        session -> FunctionConverters.asScalaFromFunction(plan -> check(session, plan))));
    extensions.injectHintResolutionRule(FunctionConverters.asScalaFromFunction(Names::new));
    extensions.injectParser(FunctionConverters.asScalaFromBiFunction(ReadOnly::watched));
    return BoxedUnit.UNIT;
  }

  /** The parser of a session, used only while the session's settings are right: a connection string sets any. */
  private static ParserInterface watched(SparkSession session, ParserInterface parser) {
    return (ParserInterface) Proxy.newProxyInstance(
        ReadOnly.class.getClassLoader(), new Class<?>[] {ParserInterface.class}, (proxy, method, arguments) -> {
          if (session != keeper) {
            checkSettings(session);
            FairSlots.begin(session.sparkContext());
          }
          try {
            Object parsed = method.invoke(parser, arguments);
            return session != keeper && parsed instanceof LogicalPlan plan ? OneRelease.over(session, plan) : parsed;
          } catch (InvocationTargetException failed) {
            Throwable cause = failed.getCause();
            if (cause instanceof RuntimeException || cause instanceof Error || cause instanceof ParseException) {
              throw cause;
            }
            throw new IllegalArgumentException(cause.getMessage(), cause); // Java wants to know of checked ones
          }
        });
  }

  private static void checkSettings(SparkSession session) {
    Map<String, String> server = CollectionConverters.asJava(keeper.conf().getAll());
    for (Map.Entry<String, String> one : CollectionConverters.asJava(session.conf().getAll()).entrySet()) {
      String key = one.getKey();
      String servers = server.getOrDefault(key, System.getProperty(key));
      if (!SETTINGS.contains(key) && !CONNECTIONS_OWN.contains(key) && !Objects.equals(servers, one.getValue())) {
        throw new Refused("the setting " + key, MAY_SET);
      }
    }
  }

  static boolean isKeeper(SparkSession session) {
    return session == keeper;
  }

  private static BoxedUnit check(SparkSession session, LogicalPlan plan) {
    if (session != keeper && !isTextOfView()) {
      walk(plan);
    }
    return BoxedUnit.UNIT;
  }

  /** Spark checks a view's text on its own as well, before it stands below its View in what the reader asked. */
  static boolean isTextOfView() {
    return StackWalker.getInstance().walk(
        frames -> frames.anyMatch(frame -> frame.getClassName().equals(VIEW_RESOLUTION)));
  }

  private static void walk(LogicalPlan plan) {
    if (plan instanceof View view && !view.isTempView()) {
      return; // its text is the follower's
    }
    String name = plan.getClass().getSimpleName().replace("$", "");
    if (plan instanceof SetCommand set) {
      checkSet(set);
    } else if (plan instanceof CreateViewCommand create) {
      if (create.viewType() != LocalTempView$.MODULE$) {
        throw new Refused("CREATE VIEW", "only a TEMPORARY VIEW belongs to the reader");
      }
      walk(create.plan());
    } else if (!NODES.contains(name) && !COMMANDS.contains(name) && !NAMED.contains(name)) {
      if (RELATIONS.contains(name)) {
        throw new Refused("a relation that is no view", Names.WHY);
      }
      throw new Refused(name, "the views belong to the release log and the tables to the lake server");
    }
    CollectionConverters.asJava(plan.expressions()).forEach(ReadOnly::walk);
    CollectionConverters.asJava(plan.children()).forEach(ReadOnly::walk);
  }

  private static void walk(Expression expression) {
    String kind = expression.getClass().getName();
    if (kind.contains("UDF") || kind.contains("UDAF") || !kind.startsWith("org.apache.spark.sql.catalyst.")) {
      throw new Refused("the function " + expression.prettyName(), "it is not one of Spark's own");
    }
    if (expression instanceof PlanExpression<?> inner && inner.plan() instanceof LogicalPlan plan) {
      walk(plan);
    }
    CollectionConverters.asJava(expression.children()).forEach(ReadOnly::walk);
  }

  private static void checkSet(SetCommand set) {
    String key = set.kv().isDefined() ? set.kv().get()._1() : "SET";
    if (!SETTINGS.contains(key)) {
      throw new Refused("SET " + key, MAY_SET);
    }
  }
}
