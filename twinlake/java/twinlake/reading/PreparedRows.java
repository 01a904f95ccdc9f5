package twinlake.reading;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.TimestampType;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.FunctionConverters;
import scala.runtime.AbstractPartialFunction;
import twinlake.lake.PreparedPlan;

/**
 * A plan over prepared files, made once, that computes in the calling thread: by the files of then, and by the
 * watermarks of then, which any other plan has inside.
 */
final class PreparedRows {
  private static final String META = "meta";
  private static final Map<String, String> NO_EXCHANGE = Map.of("spark.sql.autoBroadcastJoinThreshold", "-1");

  /** To write programs for a few rows, each time, costs more than to compute them. */
  static final Map<String, String> INTERPRETED = Map.of(
      "spark.sql.codegen.wholeStage", "false", "spark.sql.codegen.factoryMode", "NO_CODEGEN",
      "spark.sql.subexpressionElimination.enabled", "false");

  private final SparkSession session;
  private final Set<Clock> clocks = new TreeSet<>();
  private final PreparedPlan plan;

  /** A watermark that the view reads. */
  private record Clock(String view, String column) implements Comparable<Clock> {
    @Override
    public int compareTo(Clock other) {
      return toString().compareTo(other.toString());
    }

    @Override
    public String toString() {
      return view + "." + column;
    }
  }

  /** What is made of an analysed plan, whose watermarks are parameters. */
  interface Asked {
    LogicalPlan of(LogicalPlan withClocks);
  }

  /**
   * `settings` are those of the program, asked once the scans are planned. IllegalArgumentException,
   * UnsupportedOperationException or MatchError of what cannot be prepared.
   */
  PreparedRows(
      SparkSession session, LogicalPlan analysed, Asked asked, long most, Supplier<Map<String, String>> settings) {
    this.session = session;
    Literal limit = new Literal((int) (most + 1), DataTypes.IntegerType);
    LogicalPlan limited = new GlobalLimit(limit, new LocalLimit(limit, asked.of(withClocks(analysed))));
    NO_EXCHANGE.forEach(session.conf()::set);
    var planned = Dataset.ofRows((org.apache.spark.sql.classic.SparkSession) session, limited);
    planned.queryExecution().sparkPlan(); // a scan in batches is one for programs
    settings.get().forEach(session.conf()::set);
    refuseSubqueries(planned.queryExecution().executedPlan());
    plan = PreparedPlan.of(planned);
    if (!plan.isOnePartition()) {
      throw new UnsupportedOperationException("it has more than one partition");
    }
  }

  /** What a watermark is when the plan is run, in place of what it is now. */
  private LogicalPlan withClocks(LogicalPlan analysed) {
    return (LogicalPlan) analysed.transformAllExpressionsWithSubqueries(new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(Expression part) {
        return part instanceof ScalarSubquery subquery && clock(subquery) != null;
      }

      @Override
      public Expression apply(Expression part) {
        Clock found = clock((ScalarSubquery) part);
        clocks.add(found);
        return new Parameter(found.toString(), part.dataType());
      }
    });
  }

  private static Clock clock(ScalarSubquery subquery) {
    LogicalPlan below = subquery.plan();
    List<Attribute> output = CollectionConverters.asJava(below.output());
    for (List<LogicalPlan> next; !(below instanceof View); below = next.get(0)) {
      next = CollectionConverters.asJava(below.children());
      if (next.size() != 1) {
        return null;
      }
    }
    if (below instanceof View view && isClock(view)
        && subquery.dataType() instanceof TimestampType && output.size() == 1) {
      return new Clock(view.desc().identifier().table(), output.get(0).name());
    }
    return null;
  }

  /** Whether it is one of the views that tell watermarks, whose texts change with them. */
  static boolean isClock(View view) {
    return view.desc().identifier().database().contains(META);
  }

  /** What a subquery has found once is used again. */
  private static void refuseSubqueries(SparkPlan part) {
    for (Expression one : CollectionConverters.asJava(part.expressions())) {
      if (one.exists(FunctionConverters.asScalaFromFunction(below -> below instanceof PlanExpression<?>))) {
        throw new IllegalArgumentException("a plan with a subquery cannot be kept");
      }
    }
    CollectionConverters.asJava(part.children()).forEach(PreparedRows::refuseSubqueries);
  }

  /** The watermarks of now; Outdated where one is not there any more. */
  Map<String, Object> clocks() {
    Map<String, Object> values = new HashMap<>();
    for (Clock one : clocks) {
      Map<String, Long> known = LookUps.clocks(one.view());
      if (known == null || !known.containsKey(one.column())) {
        throw new PreparedScan.Outdated();
      }
      values.put(one.toString(), known.get(one.column()));
    }
    return values;
  }

  /** The rows as an Arrow stream; null where they have more bytes. To be called where each table is at one version. */
  byte[] run(Map<String, Object> given, long mostBytes) {
    SparkSession.setActiveSession(session);
    Map<String, Object> values = new HashMap<>(given);
    values.putAll(clocks());
    Parameter.give(values);
    try {
      return plan.run(mostBytes);
    } catch (Exception error) {
      throw BoundedParser.<RuntimeException>unchecked(error);
    } finally {
      Parameter.forget();
    }
  }
}
