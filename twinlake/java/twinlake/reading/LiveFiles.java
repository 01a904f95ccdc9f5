package twinlake.reading;

import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import twinlake.lake.Seqs;

/** A table at one version as Spark scans it: its files, without those that cannot hold what is asked for. */
final class LiveFiles implements FileIndex {
  private final String path;
  private final StructType columns;
  private final List<DataFile> files;
  private final long bytes;
  private final Map<String, Long> position;

  LiveFiles(String path, StructType columns, List<DataFile> files, Map<String, Long> position) {
    this.path = path;
    this.position = position;
    this.columns = columns;
    this.files = files;
    this.bytes = files.stream().mapToLong(file -> file.status().getLen()).sum();
  }

  StructType columns() {
    return columns;
  }

  List<DataFile> files() {
    return files;
  }

  /** By topic, the batch up to which its rows are computed. */
  Map<String, Long> position() {
    return position;
  }

  /** A relation with columns of its own, as often as a statement names the table. */
  LogicalPlan relation(SparkSession session) {
    var relation = new HadoopFsRelation(
        this, partitionSchema(), columns, Option.empty(), new SmallFiles(), Map$.MODULE$.empty(), session);
    return LogicalRelation$.MODULE$.apply(relation, false);
  }

  @Override
  public Seq<PartitionDirectory> listFiles(Seq<Expression> ofPartitions, Seq<Expression> ofRows) {
    List<Expression> conditions = CollectionConverters.asJava(ofRows);
    List<FileStatusWithMetadata> wanted = files.stream()
        .filter(file -> conditions.stream().allMatch(file::mayHold))
        .map(file -> new FileStatusWithMetadata(file.status(), Map$.MODULE$.empty()))
        .toList();
    return Seqs.of(List.of(new PartitionDirectory(InternalRow.empty(), Seqs.of(wanted))));
  }

  @Override
  public Seq<Path> rootPaths() {
    return Seqs.of(List.of(new Path(path)));
  }

  @Override
  public String[] inputFiles() {
    return files.stream().map(file -> file.status().getPath().toString()).toArray(String[]::new);
  }

  /** One version stays what it is. */
  @Override
  public void refresh() {}

  @Override
  public long sizeInBytes() {
    return bytes;
  }

  @Override
  public StructType partitionSchema() {
    return new StructType();
  }
}
