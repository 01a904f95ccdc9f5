package twinlake.lake;

import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Properties;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A relation over slots, planned and compiled once, computed again whenever it is run, in the calling thread: a small
 * batch costs less than planning it. Not with an exchange in it.
 */
public final class PreparedPlan {
  private final RDD<byte[]> batches;
  private final StructType columns;
  private final String zone;
  private final Properties settings = new Properties();

  private PreparedPlan(org.apache.spark.sql.classic.Dataset<Row> relation) {
    batches = relation.toArrowBatchRdd();
    // a null struct has nulls in its fields, whatever they are declared as: other readers of Arrow mind
    columns = relation.schema().asNullable();
    SQLConf session = relation.sparkSession().sessionState().conf();
    zone = session.sessionLocalTimeZone();
    settings.putAll(CollectionConverters.asJava(session.getAllConfs()));
  }

  public static PreparedPlan of(Dataset<Row> relation) {
    org.apache.spark.sql.classic.Dataset<Row> planned = (org.apache.spark.sql.classic.Dataset<Row>) relation;
    refuseExchange(planned.queryExecution().executedPlan());
    return new PreparedPlan(planned);
  }

  private static void refuseExchange(SparkPlan part) {
    if (part instanceof Exchange) {
      throw new IllegalArgumentException("a plan with an exchange cannot be kept: " + part.nodeName());
    }
    if (part instanceof AdaptiveSparkPlanExec) {
      refuseExchange(((AdaptiveSparkPlanExec) part).initialPlan());
    }
    CollectionConverters.asJava(part.children()).forEach(PreparedPlan::refuseExchange);
  }

  /** Computes a relation that is needed once, of whatever plan, by Spark's scheduler. */
  public static void once(Dataset<Row> relation, String file) throws IOException {
    PreparedPlan plan = new PreparedPlan((org.apache.spark.sql.classic.Dataset<Row>) relation);
    byte[][] computed = (byte[][]) plan.batches.collect();
    try (OutputStream out = Files.newOutputStream(Path.of(file))) {
      plan.write(CollectionConverters.asScala(Arrays.asList(computed).iterator()), out);
    }
  }

  /** Computes what is in the slots now, into an Arrow stream file; false where it has more than so many bytes. */
  public boolean run(String file, long mostBytes) throws Exception {
    try (OutputStream out = Files.newOutputStream(Path.of(file))) {
      return computedHere(out, mostBytes);
    }
  }

  /** Whether it is one partition without a shuffle, as it has to be to be computed in the calling thread. */
  public boolean isOnePartition() {
    return InlineTask.can(batches);
  }

  /** The same as an Arrow stream in memory; null where it has more bytes. Several threads may do so at once. */
  public byte[] run(long mostBytes) throws Exception {
    ByteArrayOutputStream found = new ByteArrayOutputStream();
    return computedHere(found, mostBytes) ? found.toByteArray() : null;
  }

  /**
   * A relation that is needed once, computed in the calling thread, as an Arrow stream; empty where it has more than so
   * many bytes. Null where that cannot be (more than one partition, a shuffle): nothing was computed then.
   */
  public static byte[] small(Dataset<Row> relation, long mostBytes) throws Exception {
    var planned = (org.apache.spark.sql.classic.Dataset<Row>) relation;
    if (isShuffled(planned.queryExecution().executedPlan())) {
      return null; // an adaptive plan that is asked for its partitions runs all its stages to tell
    }
    PreparedPlan plan = new PreparedPlan(planned);
    if (!InlineTask.can(plan.batches)) {
      return null;
    }
    byte[] found = plan.run(mostBytes);
    return found == null ? new byte[0] : found;
  }

  private static boolean isShuffled(SparkPlan part) {
    SparkPlan asked = part instanceof AdaptiveSparkPlanExec adaptive ? adaptive.initialPlan() : part;
    return asked instanceof ShuffleExchangeLike
        || CollectionConverters.asJava(asked.children()).stream().anyMatch(PreparedPlan::isShuffled);
  }

  private boolean computedHere(OutputStream out, long mostBytes) throws Exception {
    long[] left = {mostBytes};
    InlineTask.compute(
        batches, settings, found -> write(found.takeWhile(batch -> (left[0] -= batch.length) >= 0), out));
    return left[0] >= 0;
  }

  private void write(scala.collection.Iterator<byte[]> computed, OutputStream out) throws IOException {
    OutputStream buffered = new BufferedOutputStream(out);
    ArrowBatchStreamWriter writer = new ArrowBatchStreamWriter(columns, buffered, zone, false, false);
    writer.writeBatches(computed);
    writer.end();
    buffered.flush();
  }
}
