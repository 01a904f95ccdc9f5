package twinlake.reading;

import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import twinlake.lake.Seqs;

/** A live table in a prepared plan: which files it has is asked each time the plan is run. */
final class PreparedFiles implements FileIndex {
  /** Whatever joins it is not to be broadcast. */
  private static final long LARGE = Long.MAX_VALUE / 1024;

  private final String path;
  private final StructType columns;
  private final long mostRows;
  private long scanned = 0;

  PreparedFiles(String path, StructType columns, long mostRows) {
    this.path = path;
    this.columns = columns;
    this.mostRows = mostRows;
  }

  /** What a scan reads at most. */
  long mostRows() {
    return mostRows;
  }

  /** A scan was planned, which would read so many rows now. */
  void scans(long rows) {
    scanned += rows;
  }

  long scanned() {
    return scanned;
  }

  /** Whether rows that are too many are so before a plan is made: of look-ups the values are known later. */
  boolean isBounded() {
    return mostRows < Long.MAX_VALUE;
  }

  LogicalPlan relation(SparkSession session) {
    var relation = new HadoopFsRelation(
        this, partitionSchema(), columns, Option.empty(), SmallFiles.ofLookUps(), Map$.MODULE$.empty(), session);
    return LogicalRelation$.MODULE$.apply(relation, false);
  }

  String path() {
    return path;
  }

  /** Those of the table when the plan was made. */
  StructType columns() {
    return columns;
  }

  @Override
  public Seq<PartitionDirectory> listFiles(Seq<Expression> ofPartitions, Seq<Expression> ofRows) {
    throw new IllegalStateException("a prepared plan scans " + path + " otherwise");
  }

  @Override
  public Seq<Path> rootPaths() {
    return Seqs.of(List.of(new Path(path)));
  }

  @Override
  public String[] inputFiles() {
    return new String[0];
  }

  @Override
  public void refresh() {}

  @Override
  public long sizeInBytes() {
    return LARGE;
  }

  @Override
  public StructType partitionSchema() {
    return new StructType();
  }
}
