package twinlake.reading;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualNullSafe;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** A view of one release, with a plan for its rows by values of some columns; or why there is none. */
final class PreparedView {
  private final SparkSession session;
  private final long changes = OneRelease.changes();
  private final long release;
  private final Map<String, PreparedFiles> tables;
  private final Map<String, DataType> types = new HashMap<>();
  private String whyNot;
  private PreparedRows rows;
  private final ArrayNode columns = JsonNodeFactory.instance.arrayNode();

  private PreparedView(SparkSession session, String view, List<String> key, long most) {
    this.session = session;
    LogicalPlan[] analysed = new LogicalPlan[1];
    this.tables = LiveTable.prepared(Long.MAX_VALUE, () -> {
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
    Expression meant = conditions.stream().reduce(And::new).get();
    rows = new PreparedRows(session, analysed, all -> new Filter(meant, all), most, () -> PreparedRows.INTERPRETED);
    for (Attribute one : CollectionConverters.asJava(analysed.output())) {
      columns.addObject().put("name", one.name()).put("type", one.dataType().simpleString());
    }
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
  byte[] run(Map<String, Object> key, long mostBytes, ObjectNode head) {
    head.set("columns", columns);
    return LiveTable.atOneVersion(() -> {
      ObjectNode position = head.putObject("position");
      position().forEach(position::put);
      if (release < 0) {
        head.putNull("release");
      } else {
        head.put("release", release);
      }
      return rows.run(key, mostBytes);
    });
  }

  /** By topic, the batch up to which all its tables are computed. */
  Map<String, Long> position() {
    return LiveTable.position(tables.keySet().stream().map(LiveTable::at).toList());
  }
}
