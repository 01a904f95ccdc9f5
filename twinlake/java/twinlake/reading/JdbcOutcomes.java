package twinlake.reading;

import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.SparkSession;

/** Counts how statements over JDBC end, by the events that Spark's Thrift server posts of each. */
public final class JdbcOutcomes extends SparkListener {
  private static final String OF = "SparkListenerThriftServerOperation";

  private final Map<String, LongAdder> counts =
      Map.of("Finish", new LongAdder(), "Error", new LongAdder(), "Timeout", new LongAdder(), "Canceled", new LongAdder());

  private JdbcOutcomes() {}

  /** Counts from now on what the session's Thrift server does. */
  public static JdbcOutcomes of(SparkSession session) {
    JdbcOutcomes made = new JdbcOutcomes();
    session.sparkContext().addSparkListener(made);
    return made;
  }

  /** How many statements have ended so: Finish, Error, Timeout or Canceled. */
  public long count(String end) {
    return counts.get(end).sum();
  }

  @Override
  public void onOtherEvent(SparkListenerEvent event) {
    String name = event.getClass().getSimpleName();
    LongAdder count = name.startsWith(OF) ? counts.get(name.substring(OF.length())) : null;
    if (count != null) {
      count.increment();
    }
  }
}
