package twinlake.reading;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.Dependency;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import twinlake.lake.Seqs;

/**
 * The rows of a live table in a prepared plan, one partition: from the files that it has when the plan is run, without
 * those that by their statistics hold no row that is looked for.
 */
final class PreparedScan extends RDD<InternalRow> {
  /** Of files that may hold rows; who has more is computed by tasks, as any statement. */
  static final long MOST_BYTES = 32L << 20;

  /** The same of a statement, which looks at each row of them. */
  static final long MOST_ROWS = 300_000;

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static final Seq<Dependency<?>> NO_DEPENDENCIES = (Seq) Nil$.MODULE$;

  private final transient PreparedFiles table;
  private final transient List<Expression> conditions;
  private final transient List<String> columns;
  private final transient Function1<PartitionedFile, scala.collection.Iterator<InternalRow>> reader;

  /** The files that may hold rows have too many bytes, or rows. */
  static final class TooLarge extends RuntimeException {
    private static final long serialVersionUID = 1L;

    TooLarge(long bytes, long rows) {
      super(bytes + " bytes of files, with " + rows + " rows, may hold what is asked for");
    }
  }

  /** The table has other columns than when the plan was made. */
  static final class Outdated extends RuntimeException {
    private static final long serialVersionUID = 1L;
  }

  private PreparedScan(
      SparkSession session, PreparedFiles table, List<Expression> conditions, HadoopFsRelation relation, StructType required) {
    super(session.sparkContext(), NO_DEPENDENCIES, ClassTag$.MODULE$.apply(InternalRow.class));
    this.table = table;
    this.conditions = conditions;
    this.columns = List.of(required.fieldNames());
    var format = (SmallFiles) relation.fileFormat();
    boolean inBatches = format.supportBatch(session, required);
    var options = Map$.MODULE$.<String, String>from(CollectionConverters.asScala(
        Map.of(FileFormat$.MODULE$.OPTION_RETURNING_BATCH(), String.valueOf(inBatches))));
    this.reader = format.buildReaderWithPartitionValues(
        session, relation.dataSchema(), relation.partitionSchema(), required, Seqs.of(List.of()), options,
        ((org.apache.spark.sql.classic.SparkSession) session).sessionState().newHadoopConfWithOptions(relation.options()));
  }

  /** What scans it; null where the plan is not one of a table of a prepared plan, with its conditions and columns. */
  static SparkPlan of(SparkSession session, LogicalPlan plan) {
    var found = PhysicalOperation.unapply(plan);
    if (found.isEmpty() || !(found.get()._3() instanceof LogicalRelation logical)
        || !(logical.relation() instanceof HadoopFsRelation relation)
        || !(relation.location() instanceof PreparedFiles table)) {
      return null;
    }
    List<NamedExpression> shown = CollectionConverters.asJava(found.get()._1());
    List<Expression> conditions = CollectionConverters.asJava(found.get()._2());
    Set<String> wanted = new LinkedHashSet<>();
    List<Expression> all = new ArrayList<>(conditions);
    shown.forEach(one -> all.add((Expression) one));
    all.forEach(one -> CollectionConverters.asJava(one.references().toSeq()).forEach(of -> wanted.add(of.name())));
    List<Attribute> output = new ArrayList<>();
    StructType required = new StructType();
    for (Attribute one : CollectionConverters.asJava(logical.output())) {
      if (wanted.contains(one.name()) || wanted.isEmpty()) {
        output.add(one);
        required = required.add(one.name(), one.dataType(), one.nullable(), one.metadata());
        wanted.add(one.name());
      }
    }
    if (table.isBounded()) {
      table.scans(wanted(table, LiveTable.at(table.path()), conditions).stream().mapToLong(DataFile::rows).sum());
    }
    var rows = new PreparedScan(session, table, conditions, relation, required);
    SparkPlan scan = new RDDScanExec(
        Seqs.of(output), rows, table.path(), SinglePartition$.MODULE$, Seqs.of(List.of()), Option.empty());
    if (!conditions.isEmpty()) {
      scan = new FilterExec(conditions.stream().reduce(And::new).get(), scan);
    }
    return new ProjectExec(Seqs.of(shown), scan);
  }

  @Override
  public Partition[] getPartitions() {
    return new Partition[] {new Only()};
  }

  @Override
  public scala.collection.Iterator<InternalRow> compute(Partition only, TaskContext task) {
    LiveFiles now = LiveTable.at(table.path());
    if (!now.columns().equals(table.columns())) {
      throw new Outdated();
    }
    List<Expression> bound = conditions.stream().map(Parameter::bound).toList();
    List<FileStatus> files = wanted(table, now, bound).stream().map(DataFile::status).toList();
    return CollectionConverters.asScala(new Found(files.iterator(), new Sought(bound, columns)));
  }

  /** The files that may hold rows; TooLarge for too many. */
  private static List<DataFile> wanted(PreparedFiles table, LiveFiles now, List<Expression> conditions) {
    List<DataFile> files = now.files().stream().filter(file -> conditions.stream().allMatch(file::mayHold)).toList();
    long bytes = files.stream().mapToLong(file -> file.status().getLen()).sum();
    long rows = files.stream().mapToLong(DataFile::rows).sum();
    if (bytes > MOST_BYTES || rows > table.mostRows()) {
      throw new TooLarge(bytes, rows);
    }
    return files;
  }

  /** Of each file in turn those rows that may be meant; the filter above looks at each of them again. */
  private final class Found implements Iterator<InternalRow> {
    private final Iterator<FileStatus> files;
    private final Sought sought;
    private Iterator<InternalRow> open = List.<InternalRow>of().iterator();
    private scala.collection.Iterator<?> read = scala.collection.Iterator$.MODULE$.empty();

    Found(Iterator<FileStatus> files, Sought sought) {
      this.files = files;
      this.sought = sought;
    }

    @Override
    public boolean hasNext() {
      while (!open.hasNext()) {
        if (read.hasNext()) {
          open = sought.in(read.next());
        } else if (files.hasNext()) {
          read = reader.apply(whole(files.next()));
        } else {
          return false;
        }
      }
      return true;
    }

    @Override
    public InternalRow next() {
      return open.next();
    }
  }

  private static PartitionedFile whole(FileStatus file) {
    return new PartitionedFile(
        InternalRow.empty(), SparkPath.fromFileStatus(file), 0, file.getLen(), new String[0], file.getModificationTime(),
        file.getLen(), Map$.MODULE$.empty());
  }

  private static final class Only implements Partition {
    private static final long serialVersionUID = 1L;

    @Override
    public int index() {
      return 0;
    }
  }
}
