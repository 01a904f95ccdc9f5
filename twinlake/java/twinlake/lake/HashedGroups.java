package twinlake.lake;

import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial$;
import org.apache.spark.sql.catalyst.expressions.aggregate.ThetaSketchAgg;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/**
 * Rows aggregated in part, by hash, in the order in which they come: the greatest or least struct of each group, theta
 * sketches, and beside them what Spark updates in place. A group comes more than once where all would take more memory
 * than they may: whoever aggregates the parts expects that of parts.
 */
public final class HashedGroups extends SparkPlan {
  private static final long serialVersionUID = 1L;

  final Seq<NamedExpression> keys;
  final Seq<AggregateExpression> aggregates;
  private final Seq<NamedExpression> results;
  final SparkPlan child;
  final long bytes;

  /** Public, with all that {@link #productElement} shows: Spark copies its plans that way. */
  public HashedGroups(
      Seq<NamedExpression> keys, Seq<AggregateExpression> aggregates, Seq<NamedExpression> results, SparkPlan child,
      long bytes) {
    this.keys = keys;
    this.aggregates = aggregates;
    this.results = results;
    this.child = child;
    this.bytes = bytes;
  }

  /** The same parts, of these rows. */
  static HashedGroups of(BaseAggregateExec parts, SparkPlan rows, long bytes) {
    var made = new HashedGroups(
        parts.groupingExpressions(), parts.aggregateExpressions(), parts.resultExpressions(), rows, bytes);
    made.copyTagsFrom((SparkPlan) parts);
    return made;
  }

  /**
   * Whether these are parts that can be computed here: of groups whose keys are equal where their bytes are, with a
   * struct or a sketch among them, for whose sake it is done.
   */
  static boolean can(BaseAggregateExec parts) {
    List<AggregateExpression> aggregates = CollectionConverters.asJava(parts.aggregateExpressions());
    List<NamedExpression> keys = CollectionConverters.asJava(parts.groupingExpressions());
    return !keys.isEmpty() && keys.stream().allMatch(one -> UnsafeRowUtils.isBinaryStable(type(one)))
        && aggregates.stream().allMatch(HashedGroups::can)
        && aggregates.stream().anyMatch(one -> isKept(one.aggregateFunction()));
  }

  private static DataType type(NamedExpression one) {
    return ((Expression) one).dataType();
  }

  private static boolean can(AggregateExpression one) {
    var aggregate = one.aggregateFunction();
    return one.mode() == Partial$.MODULE$ && !one.isDistinct() && one.filter().isEmpty()
        && (isKept(aggregate) || aggregate instanceof DeclarativeAggregate
            && CollectionConverters.asJava(aggregate.aggBufferAttributes()).stream()
                .allMatch(stored -> UnsafeRow.isMutable(stored.dataType())));
  }

  private static boolean isKept(AggregateFunction aggregate) {
    return aggregate instanceof ThetaSketchAgg || chosen(aggregate) != null;
  }

  /** The struct of which the greatest or least is kept; null of other aggregates. */
  static Expression chosen(AggregateFunction aggregate) {
    boolean chooses = aggregate instanceof Max || aggregate instanceof Min;
    return chooses && aggregate.dataType() instanceof StructType
        ? CollectionConverters.asJava(aggregate.children()).get(0) : null;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return child.execute()
        .mapPartitionsWithIndex(new GroupingTask(this), false, ClassTag$.MODULE$.apply(InternalRow.class));
  }

  @Override
  public Seq<Attribute> output() {
    return Seqs.of(CollectionConverters.asJava(results).stream().map(NamedExpression::toAttribute).toList());
  }

  @Override
  public AttributeSet producedAttributes() {
    return outputSet();
  }

  @Override
  public Partitioning outputPartitioning() {
    return child.outputPartitioning();
  }

  @Override
  public Seq<SparkPlan> children() {
    return Seqs.of(List.of(child));
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new HashedGroups(keys, aggregates, results, CollectionConverters.asJava(children).get(0), bytes);
  }

  @Override
  public SparkPlan mapChildren(Function1<SparkPlan, SparkPlan> by) {
    SparkPlan made = by.apply(child);
    return made == child ? this : (SparkPlan) withNewChildren(Seqs.of(List.of(made)));
  }

  @Override
  public int productArity() {
    return 5;
  }

  @Override
  public Object productElement(int at) {
    return new Object[] {keys, aggregates, results, child, bytes}[at];
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof HashedGroups;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof HashedGroups same && productIterator().sameElements(same.productIterator());
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }
}
