package twinlake.reading;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.FunctionConverters;
import scala.runtime.AbstractPartialFunction;
import twinlake.lake.PreparedPlan;

/** A view of one release, with a plan for its rows by values of some columns; or why there is none. */
final class PreparedView {
  private static final String META = "meta";
  private static final Map<String, String> NO_EXCHANGE = Map.of("spark.sql.autoBroadcastJoinThreshold", "-1");

  /** To write programs for a few rows, each time, costs more than to compute them. */
  private static final Map<String, String> INTERPRETED = Map.of(
      "spark.sql.codegen.wholeStage", "false", "spark.sql.codegen.factoryMode", "NO_CODEGEN",
      "spark.sql.subexpressionElimination.enabled", "false");

  private final SparkSession session;
  private final long changes = OneRelease.changes();
  private final long release;
  private final Map<String, PreparedFiles> tables;
  private final Map<String, DataType> types = new HashMap<>();
  private final Set<Clock> clocks = new TreeSet<>();
  private String whyNot;
  private PreparedPlan plan;
  private final ArrayNode columns = JsonNodeFactory.instance.arrayNode();

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

  private PreparedView(SparkSession session, String view, List<String> key, long most) {
    this.session = session;
    LogicalPlan[] analysed = new LogicalPlan[1];
    this.tables = LiveTable.prepared(() -> {
      var read = (Dataset<Row>) session.sql("SELECT * FROM " + view);
      analysed[0] = read.queryExecution().analyzed();
    });
    this.release = OneRelease.ofLastStatement();
    if (most == 0) {
      return; // its tables alone are asked for
    }
    try {
      prepare(analysed[0], key, most);
    } catch (IllegalArgumentException | UnsupportedOperationException | scala.MatchError not) {
      whyNot = String.valueOf(not.getMessage());
    }
  }

  /** An error of the view itself is left to whoever reads it by SQL. */
  static PreparedView of(SparkSession owner, String view, List<String> key, long most) {
    return new PreparedView(DefaultSchema.begin(owner, ""), view, key, most);
  }

  private void prepare(LogicalPlan analysed, List<String> key, long most) {
    Map<String, Attribute> attributes = new HashMap<>();
    for (Attribute one : CollectionConverters.asJava(analysed.output())) {
      attributes.put(one.name(), one);
    }
    List<Expression> conditions = new ArrayList<>();
    for (String name : key) {
      if (!attributes.containsKey(name)) {
        throw new IllegalArgumentException("the view has no column " + name);
      }
      DataType type = attributes.get(name).dataType();
      if (type instanceof ArrayType || type instanceof MapType || type instanceof StructType || type instanceof BinaryType) {
        throw new IllegalArgumentException(name + " is " + type.simpleString());
      }
      types.put(name, type);
      conditions.add(new EqualNullSafe(attributes.get(name), new Parameter(name, type)));
    }
    LogicalPlan asked = new Filter(conditions.stream().reduce(And::new).get(), withClocks(analysed));
    Literal limit = new Literal((int) (most + 1), DataTypes.IntegerType);
    LogicalPlan limited = new GlobalLimit(limit, new LocalLimit(limit, asked));
    NO_EXCHANGE.forEach(session.conf()::set);
    var planned = Dataset.ofRows((org.apache.spark.sql.classic.SparkSession) session, limited);
    planned.queryExecution().sparkPlan(); // a scan in batches is one for programs
    INTERPRETED.forEach(session.conf()::set);
    refuseSubqueries(planned.queryExecution().executedPlan());
    plan = PreparedPlan.of(planned);
    for (Attribute one : CollectionConverters.asJava(analysed.output())) {
      columns.addObject().put("name", one.name()).put("type", one.dataType().simpleString());
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
    if (below instanceof View view && view.desc().identifier().database().contains(META)
        && subquery.dataType() instanceof TimestampType && output.size() == 1) {
      return new Clock(view.desc().identifier().table(), output.get(0).name());
    }
    return null;
  }

  /** What a subquery has found once is used again. */
  private static void refuseSubqueries(SparkPlan part) {
    for (Expression one : CollectionConverters.asJava(part.expressions())) {
      if (one.exists(FunctionConverters.asScalaFromFunction(below -> below instanceof PlanExpression<?>))) {
        throw new IllegalArgumentException("a plan with a subquery cannot be kept");
      }
    }
    CollectionConverters.asJava(part.children()).forEach(PreparedView::refuseSubqueries);
  }

  long changes() {
    return changes;
  }

  String whyNot() {
    return whyNot;
  }

  DataType type(String column) {
    return types.get(column);
  }

  /** The rows as an Arrow stream, and in the head of which release and position they are; null where they are large. */
  byte[] run(Map<String, Object> key, long mostBytes, ObjectNode head) throws Exception {
    Map<String, Object> values = new HashMap<>(key);
    for (Clock one : clocks) {
      Map<String, Long> known = LookUps.clocks(one.view());
      if (known == null || !known.containsKey(one.column())) {
        throw new PreparedScan.Outdated();
      }
      values.put(one.toString(), known.get(one.column()));
    }
    head.set("columns", columns);
    SparkSession.setActiveSession(session);
    Parameter.give(values);
    try {
      return LiveTable.atOneVersion(() -> {
        ObjectNode position = head.putObject("position");
        position().forEach(position::put);
        if (release < 0) {
          head.putNull("release");
        } else {
          head.put("release", release);
        }
        try {
          return plan.run(mostBytes);
        } catch (RuntimeException error) {
          throw error;
        } catch (Exception error) {
          throw new IllegalStateException(error.getMessage(), error);
        }
      });
    } finally {
      Parameter.forget();
    }
  }

  /** By topic, the batch up to which all its tables are computed. */
  Map<String, Long> position() {
    return LiveTable.position(tables.keySet().stream().map(LiveTable::at).toList());
  }
}
