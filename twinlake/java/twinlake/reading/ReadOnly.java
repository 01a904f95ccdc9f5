package twinlake.reading;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.CheckAnalysis;
import org.apache.spark.sql.catalyst.analysis.LocalTempView$;
import org.apache.spark.sql.catalyst.analysis.ViewResolution$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.execution.command.SetCommand;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;
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
  private static final String PARTITIONS = "spark.sql.shuffle.partitions";
  private static final int MOST_PARTITIONS = 999;
  /** Each takes memory while a statement is planned and its program made: with 20,000 the server ended. */
  private static final int MOST_COLUMNS = 10_000;
  private static final Pattern SMALL_NUMBER = Pattern.compile("[1-9]\\d{0,2}");

  /** The settings a reader may change; the others are the server's. */
  private static final Set<String> SETTINGS = Set.of(
      "spark.sql.ansi.enabled", "spark.sql.session.timeZone", PARTITIONS, Moments.SETTING);

  /** What JDBC's driver and server set for every connection, and how a connection wants tables listed. */
  private static final Set<String> CONNECTIONS_OWN = Set.of(
      HiveSettings.DRIVERS_OWN, ShownNames.LISTING, "spark.sql.binaryOutputStyle", "spark.sql.datetime.java8API.enabled");

  private static final String MAY_SET = "a reader may set " + String.join(", ", SETTINGS.stream().sorted().toList());

  private static final String SUBQUERY = Guards.method(CheckAnalysis.class, "checkSubqueryExpression");

  private static final String VIEW_RESOLUTION = ViewResolution$.class.getName();

  private static volatile SparkSession ownerSession;

  /** From now on every session but this one, which keeps the views, only reads; once. */
  public static synchronized void restrictOthers(SparkSession session) {
    if (ownerSession != null) {
      throw new IllegalStateException("a session keeps the views already");
    }
    Guards.checkVersions();
    SealedProperties.seal();
    HiveSettings.restrict();
    Functions.restrict();
    ownerSession = session;
    Canaries.release(session);
  }

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectCheckRule(FunctionConverters.asScalaFromFunction(
        session -> FunctionConverters.asScalaFromFunction(plan -> check(session, plan))));
    extensions.injectHintResolutionRule(FunctionConverters.asScalaFromFunction(Names::new));
    Ending.watch(extensions);
    Loops.watch(extensions);
    extensions.injectParser(FunctionConverters.asScalaFromBiFunction(ReadOnly::watched));
    return BoxedUnit.UNIT;
  }

  /** The parser of a session, used only while the session's settings are right: a connection string sets any. */
  private static ParserInterface watched(SparkSession session, ParserInterface parser) {
    ParserInterface bounded = new BoundedParser();
    return (ParserInterface) Proxy.newProxyInstance(
        ReadOnly.class.getClassLoader(), new Class<?>[] {ParserInterface.class}, (proxy, method, arguments) -> {
          if (session != ownerSession) {
            checkSettings(session);
            FairSlots.begin(session.sparkContext());
          }
          try {
            Object parsed = method.invoke(session == ownerSession ? parser : bounded, arguments);
            return session != ownerSession && parsed instanceof LogicalPlan plan ? OneRelease.over(session, plan, String.valueOf(arguments[0])) : parsed;
          } catch (InvocationTargetException failed) {
            Throwable cause = failed.getCause();
            if (cause instanceof RuntimeException || cause instanceof Error || cause instanceof ParseException) {
              throw cause;
            }
            throw new IllegalArgumentException(cause.getMessage(), cause); // Java wants to know of checked ones
          }
        });
  }

  /** Each partition costs memory, whether it has rows or not. */
  private static void checkPartitions(String key, String value) {
    if (key.equals(PARTITIONS) && !SMALL_NUMBER.matcher(value.strip()).matches()) {
      throw new Refused(key + " = " + value, "it is a number from 1 to 999");
    }
  }

  private static void checkSettings(SparkSession session) {
    Map<String, String> server = CollectionConverters.asJava(ownerSession.conf().getAll());
    for (Map.Entry<String, String> one : CollectionConverters.asJava(session.conf().getAll()).entrySet()) {
      String key = one.getKey();
      checkPartitions(key, one.getValue());
      String servers = server.getOrDefault(key, System.getProperty(key));
      if (!SETTINGS.contains(key) && !CONNECTIONS_OWN.contains(key) && !Objects.equals(servers, one.getValue())) {
        throw new Refused("the setting " + key, MAY_SET);
      }
    }
  }

  /** A copy of the settings of the session that keeps the views. */
  static SQLConf ownersConf() {
    return ((org.apache.spark.sql.classic.SparkSession) ownerSession).sessionState().conf().clone();
  }

  static boolean isOwnerSession(SparkSession session) {
    return session == ownerSession;
  }

  private static BoxedUnit check(SparkSession session, LogicalPlan plan) {
    if (session != ownerSession && !isTextOfView() && !isOfSubquery()) {
      walk(plan);
      Protected.check(session, plan);
      DefaultSchema.refuseLasting(session, plan);
    }
    return BoxedUnit.UNIT;
  }

  /** Spark checks a view's text on its own as well, before it stands below its View in what the reader asked. */
  static boolean isTextOfView() {
    return StackWalker.getInstance().walk(
        frames -> frames.anyMatch(frame -> frame.getClassName().equals(VIEW_RESOLUTION)));
  }

  /**
   * Spark checks what a subquery reads on its own as well, before the plan that it stands in: there it is walked, or
   * stands below a view, whose text may have one.
   */
  private static boolean isOfSubquery() {
    return StackWalker.getInstance().walk(frames -> frames.anyMatch(
        frame -> frame.getMethodName().equals(SUBQUERY) && frame.getClassName().equals(CheckAnalysis.class.getName())));
  }

  private static void walk(LogicalPlan plan) {
    if (plan instanceof View view && !view.isTempView()) {
      return; // its text is the follower's
    }
    Class<?> kind = plan.getClass();
    if (plan instanceof SetCommand set) {
      checkSet(set);
    } else if (plan instanceof CreateViewCommand create) {
      if (create.viewType() != LocalTempView$.MODULE$) {
        throw new Refused("CREATE VIEW", "only a TEMPORARY VIEW belongs to the reader");
      }
      walk(create.plan());
    } else if (!Known.NODES.contains(kind) && !Known.COMMANDS.contains(kind) && !Known.NAMED.contains(kind)) {
      if (Known.RELATIONS.contains(kind)) {
        throw new Refused("a relation that is not a view", Names.WHY);
      }
      throw new Refused(kind.getSimpleName().replace("$", ""), "the views belong to the release log and the tables to the lake server");
    }
    checkPartitions(plan);
    if (Known.NODES.contains(kind) && CollectionConverters.asJava(plan.output()).size() > MOST_COLUMNS) {
      throw BoundedParser.tooMuch("a statement of more than " + MOST_COLUMNS + " columns");
    }
    CollectionConverters.asJava(plan.expressions()).forEach(ReadOnly::walk);
    CollectionConverters.asJava(plan.children()).forEach(ReadOnly::walk);
  }

  private static void checkPartitions(LogicalPlan plan) {
    Option<?> asked = plan instanceof Range range ? range.numSlices()
        : plan instanceof RepartitionOperation parts ? Option.apply(parts.numPartitions()) : Option.empty();
    if (asked.isDefined() && (int) asked.get() > MOST_PARTITIONS) {
      throw new Refused(asked.get() + " partitions", "each costs memory, and a statement has at most " + MOST_PARTITIONS);
    }
  }

  private static void walk(Expression expression) {
    String kind = expression.getClass().getName();
    boolean isSparks = expression instanceof BoundedSize || expression instanceof Parameter || kind.startsWith("org.apache.spark.sql.catalyst.");
    if (kind.contains("UDF") || kind.contains("UDAF") || !isSparks) {
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
    if (set.kv().get()._2().isDefined()) {
      checkPartitions(key, set.kv().get()._2().get());
    }
  }

  /** Looked up when the first statement is, which is a canary. */
  private static final class Known {
    static final Set<Class<?>> NODES = Guards.classes(
        "Aggregate", "AsOfJoin", "CTERelationDef", "CTERelationRef", "Deduplicate", "DeserializeToObject", "Distinct", "EmptyRelation",
        "Except", "Expand", "Filter", "Generate", "GlobalLimit", "Intersect", "Join", "LateralJoin", "LocalLimit",
        "LocalRelation", "Offset", "OneRowRelation", "PipeOperator", "Pivot", "Project", "Range", "RebalancePartitions",
        "Repartition", "RepartitionByExpression", "ResolvedHint", "ReturnAnswer", "Sample", "Sort", "Subquery",
        "SubqueryAlias", "Tail", "Transpose", "Union", "UnionLoop", "UnionLoopRef", "Unpivot", "View", "Window",
        "WindowGroupLimit", "WithCTE", "WithWindowDefinition");

    /** Commands that only tell, or change nothing but the reader's own session. */
    static final Set<Class<?>> COMMANDS = Guards.classes(
        "CreateVariable", "DescribeColumn", "DescribeColumnCommand", "DescribeDatabaseCommand", "DescribeFunction",
        "DescribeFunctionCommand", "DescribeNamespace", "DescribeQueryCommand", "DescribeRelation",
        "DescribeRelationJsonCommand", "DescribeTableCommand", "DropTempViewCommand", "DropVariable",
        "ExplainCommand", "MultiResult", "CommandResult", "ResetCommand", "SetCatalogAndNamespace",
        "SetNamespaceCommand", "SetVariable", "ShowCatalogsCommand", "ShowColumns", "ShowColumnsCommand",
        "ShowCreateTable", "ShowCreateTableCommand", "ShowCurrentNamespaceCommand", "ShowFunctions",
        "ShowFunctionsCommand", "ShowNamespacesCommand", "ShowTableProperties",
        "ShowTablePropertiesCommand", "ShowTables", "ShowTablesCommand", "ShowTablesExtended", "ShowViews",
        "ShowViewsCommand");

    /** What commands name, resolved: things of the catalog. ResolvedTable is missing, it may be a path. */
    static final Set<Class<?>> NAMED = Guards.classes(
        "ResolvedIdentifier", "ResolvedNamespace", "ResolvedNonPersistentFunc", "ResolvedPersistentFunc",
        "ResolvedPersistentView", "ResolvedTempView");

    static final Set<Class<?>> RELATIONS = Guards.classes(
        "DataSourceV2Relation", "LogicalRelation", "ResolvedTable", "StreamingRelation", "StreamingRelationV2");
  }
}
