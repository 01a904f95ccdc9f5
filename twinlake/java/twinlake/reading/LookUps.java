package twinlake.reading;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;

/**
 * Rows of a view by values of its key, by a plan that is made once for a view and the key columns that are given: to
 * plan a statement costs more than to compute it. What a plan cannot be made for is left to SQL.
 */
public final class LookUps {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long MOST_BYTES = 16L << 20;
  private static final int TRIES = 3;
  private static final int KEPT = 500;

  /** By view and column, what the views of watermarks say. */
  private static final Map<String, Map<String, Long>> CLOCKS = new ConcurrentHashMap<>();

  private static final Map<Asked, PreparedView> PLANS = new ConcurrentHashMap<>();

  private record Asked(String view, List<String> key, long most) {}

  private LookUps() {}

  /** What the view says from now on, in microseconds, as JSON. */
  public static void clocks(String view, String values) throws IOException {
    Map<String, Long> found = new HashMap<>();
    JSON.readTree(values).fields().forEachRemaining(
        one -> found.put(one.getKey(), one.getValue().isNull() ? null : Long.valueOf(one.getValue().longValue())));
    CLOCKS.put(view, found);
  }

  static Map<String, Long> clocks(String view) {
    return CLOCKS.get(view);
  }

  /**
   * The rows, at most one more than `most`, of one release and each table at one version.
   *
   * @param asked JSON: view, key (by column null or text and, of a time, micros), most
   * @return the length of a JSON head in four bytes, the head, and an Arrow stream. The head has release, position and
   *     columns; or `by_sql`, why the plan cannot be used; or `wrong`, the column whose value is none of its `type`
   */
  public static byte[] find(SparkSession owner, String asked) throws Exception {
    JsonNode question = JSON.readTree(asked);
    List<String> names = new ArrayList<>();
    question.get("key").fieldNames().forEachRemaining(names::add);
    Asked which = new Asked(question.get("view").textValue(), names, question.get("most").longValue());
    for (int tried = 0; ; tried++) {
      ObjectNode head = JSON.createObjectNode();
      PreparedView view = OneRelease.seen(() -> plan(owner, which));
      try {
        return found(view, question.get("key"), head);
      } catch (PreparedScan.Outdated other) {
        PLANS.remove(which);
        if (tried == TRIES) {
          throw other;
        }
      } catch (PreparedScan.TooLarge large) {
        return answer(head.put("by_sql", large.getMessage()), new byte[0]);
      }
    }
  }

  /** By topic, as JSON, where the tables are that a view reads; a plan need not be possible. */
  public static String position(SparkSession owner, String view) throws Exception {
    Asked which = new Asked(view, List.of(), 0);
    PreparedView found = OneRelease.seen(() -> plan(owner, which));
    Map<String, Long> at = LiveTable.atOneVersion(found::position);
    return JSON.writeValueAsString(at);
  }

  private static PreparedView plan(SparkSession owner, Asked asked) {
    PreparedView known = PLANS.get(asked);
    if (known == null || known.changes() != OneRelease.changes()) {
      synchronized (PLANS) {
        known = PLANS.get(asked);
        if (known == null || known.changes() != OneRelease.changes()) {
          known = PreparedView.of(owner, asked.view, asked.key, asked.most);
          PLANS.values().removeIf(one -> one.changes() != OneRelease.changes());
          if (PLANS.size() >= KEPT) {
            PLANS.clear();
          }
          PLANS.put(asked, known);
        }
      }
    }
    return known;
  }

  private static byte[] found(PreparedView view, JsonNode key, ObjectNode head) throws Exception {
    if (view.whyNot() != null) {
      return answer(head.put("by_sql", view.whyNot()), new byte[0]);
    }
    Map<String, Object> values = new HashMap<>();
    for (var fields = key.fields(); fields.hasNext();) {
      var one = fields.next();
      DataType type = view.type(one.getKey());
      Object value = one.getValue().isNull() ? null : value(one.getValue(), type);
      if (value == null && !one.getValue().isNull()) {
        return answer(head.put("wrong", one.getKey()).put("type", type.simpleString()), new byte[0]);
      }
      values.put(one.getKey(), value);
    }
    byte[] rows = view.run(values, MOST_BYTES, head);
    return rows == null ? answer(JSON.createObjectNode().put("by_sql", "the answer is large"), new byte[0]) : answer(head, rows);
  }

  /** Null for a text that is none of the type. */
  private static Object value(JsonNode given, DataType type) {
    if (type instanceof TimestampType) {
      return given.path("micros").isNumber() ? (Object) given.get("micros").longValue() : null;
    }
    Literal text = Literal.create(UTF8String.fromString(given.get("text").textValue()), DataTypes.StringType);
    return new Cast(text, type, Option.apply("UTC"), EvalMode$.MODULE$.TRY()).eval(null);
  }

  /** The form of what {@link #find} returns. */
  static byte[] answer(ObjectNode head, byte[] rows) throws IOException {
    byte[] text = JSON.writeValueAsBytes(head);
    ByteArrayOutputStream all = new ByteArrayOutputStream(4 + text.length + rows.length);
    all.write(ByteBuffer.allocate(4).putInt(text.length).array());
    all.write(text);
    all.write(rows);
    return all.toByteArray();
  }
}
