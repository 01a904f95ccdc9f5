package twinlake.ingest;

import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.kafka010.KafkaSourceProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's Kafka source with a limit that may change from batch to batch: `maxOffsetsPerTrigger` is fixed when a
 * stream starts. Only the planning of batches passes through here; executors see Kafka's own readers.
 */
public final class BoundedKafka implements TableProvider {
  /** The option that names the stream's limit. */
  public static final String LIMIT = "twinlake.limit";

  private static final Map<String, Long> LIMITS = new ConcurrentHashMap<>();

  private final KafkaSourceProvider kafka = new KafkaSourceProvider();

  /** The next batch of the stream with this limit has at most so many offsets. */
  public static void limit(String name, long offsets) {
    LIMITS.put(name, offsets);
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return kafka.inferSchema(options);
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new Bounded(kafka.getTable(schema, partitioning, properties));
  }

  private record Bounded(Table kafka) implements Table, SupportsRead {
    @Override
    public String name() {
      return kafka.name();
    }

    @Override
    @SuppressWarnings("deprecation") // Kafka's table has its columns from there
    public StructType schema() {
      return kafka.schema();
    }

    @Override
    public Set<TableCapability> capabilities() {
      return kafka.capabilities();
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      ScanBuilder builder = ((SupportsRead) kafka).newScanBuilder(options);
      return () -> new BoundedScan(builder.build(), options.get(LIMIT));
    }
  }

  private record BoundedScan(Scan kafka, String limit) implements Scan {
    @Override
    public StructType readSchema() {
      return kafka.readSchema();
    }

    @Override
    public String description() {
      return kafka.description();
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
      return kafka.supportedCustomMetrics();
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
      return kafka.columnarSupportMode();
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpoint) {
      return new BoundedStream(kafka.toMicroBatchStream(checkpoint), limit);
    }
  }

  private static final class BoundedStream
      implements MicroBatchStream, SupportsAdmissionControl, ReportsSourceMetrics {
    private final MicroBatchStream kafka;
    private final String limit;

    BoundedStream(MicroBatchStream kafka, String limit) {
      this.kafka = kafka;
      this.limit = limit;
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
      return ReadLimit.maxRows(LIMITS.get(limit));
    }

    /** The limit that Spark gives is the one of the stream's start. */
    @Override
    public Offset latestOffset(Offset start, ReadLimit ofStart) {
      return ((SupportsAdmissionControl) kafka).latestOffset(start, getDefaultReadLimit());
    }

    @Override
    public Offset latestOffset() {
      return kafka.latestOffset();
    }

    @Override
    public Offset reportLatestOffset() {
      return ((SupportsAdmissionControl) kafka).reportLatestOffset();
    }

    @Override
    public Map<String, String> metrics(Optional<Offset> consumed) {
      return ((ReportsSourceMetrics) kafka).metrics(consumed);
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
      return kafka.planInputPartitions(start, end);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return kafka.createReaderFactory();
    }

    @Override
    public Offset initialOffset() {
      return kafka.initialOffset();
    }

    @Override
    public Offset deserializeOffset(String json) {
      return kafka.deserializeOffset(json);
    }

    @Override
    public void commit(Offset end) {
      kafka.commit(end);
    }

    @Override
    public void stop() {
      kafka.stop();
    }

    @Override
    public String toString() {
      return kafka.toString();
    }
  }
}
