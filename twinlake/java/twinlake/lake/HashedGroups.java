package twinlake.lake;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.MutableProjection;
import org.apache.spark.sql.catalyst.expressions.MutableProjection$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial$;
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateOrdering$;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.SortAggregateExec;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;

/**
 * Rows aggregated in part, by hash, in the order in which they come: the greatest or least struct of each group, and
 * what has a fixed width beside it. A group comes more than once where all would take more memory than they may:
 * whoever aggregates the parts expects that of parts.
 */
public final class HashedGroups extends SparkPlan {
  private static final long serialVersionUID = 1L;

  private final Seq<NamedExpression> keys;
  private final Seq<AggregateExpression> aggregates;
  private final Seq<NamedExpression> results;
  private final SparkPlan child;
  private final long bytes;

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

  /** The same parts of the rows that it would sort. */
  static HashedGroups of(SortAggregateExec sorted, long bytes) {
    return new HashedGroups(
        sorted.groupingExpressions(), sorted.aggregateExpressions(), sorted.resultExpressions(),
        ((SortExec) sorted.child()).child(), bytes);
  }

  /** Whether it is a part that can be computed here. */
  static boolean can(AggregateExpression one) {
    return one.mode() == Partial$.MODULE$ && !one.isDistinct() && one.filter().isEmpty()
        && one.aggregateFunction() instanceof DeclarativeAggregate aggregate
        && (chosen(aggregate) != null
            || CollectionConverters.asJava(aggregate.aggBufferAttributes()).stream()
                .allMatch(stored -> UnsafeRow.isMutable(stored.dataType())));
  }

  /** The struct of which the greatest or least is kept; null of other aggregates. */
  private static CreateNamedStruct chosen(DeclarativeAggregate aggregate) {
    boolean chooses = aggregate instanceof Max || aggregate instanceof Min;
    return chooses && CollectionConverters.asJava(aggregate.children()).get(0) instanceof CreateNamedStruct struct
        ? struct : null;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return child.execute()
        .mapPartitionsWithIndex(new Task(this), false, ClassTag$.MODULE$.apply(InternalRow.class));
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
    return made == child ? this : new HashedGroups(keys, aggregates, results, made, bytes);
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

  /** What one partition needs; it may be sent to another machine. */
  private static final class Task
      extends AbstractFunction2<Object, scala.collection.Iterator<InternalRow>, scala.collection.Iterator<InternalRow>>
      implements Serializable {
    private static final long serialVersionUID = 1L;
    private final long bytes;
    private final List<Expression> keys = new ArrayList<>();
    private final List<Attribute> columns = new ArrayList<>();
    private final List<Expression> initial = new ArrayList<>();
    private final List<Expression> updated = new ArrayList<>();
    private final List<Attribute> fixed = new ArrayList<>();
    private final List<CreateNamedStruct> structs = new ArrayList<>();
    private final List<Boolean> isGreatest = new ArrayList<>();
    /** Of each aggregate which of the structs it is, or how many of the fixed columns it has: as -1, -2... */
    private final List<Integer> order = new ArrayList<>();

    Task(HashedGroups plan) {
      bytes = plan.bytes;
      CollectionConverters.asJava(plan.keys).forEach(one -> keys.add((Expression) one));
      columns.addAll(CollectionConverters.asJava(plan.child.output()));
      for (AggregateExpression one : CollectionConverters.asJava(plan.aggregates)) {
        var aggregate = (DeclarativeAggregate) one.aggregateFunction();
        CreateNamedStruct struct = chosen(aggregate);
        if (struct != null) {
          order.add(structs.size());
          structs.add(struct);
          isGreatest.add(aggregate instanceof Max);
        } else {
          List<? extends Attribute> stored = CollectionConverters.asJava(aggregate.aggBufferAttributes());
          order.add(-stored.size());
          fixed.addAll(stored);
          initial.addAll(CollectionConverters.asJava(aggregate.initialValues()));
          updated.addAll(CollectionConverters.asJava(aggregate.updateExpressions()));
        }
      }
    }

    @Override
    public scala.collection.Iterator<InternalRow> apply(Object partition, scala.collection.Iterator<InternalRow> rows) {
      return CollectionConverters.asScala(new Groups(this, rows));
    }

    /** Keys, fixed columns and structs, in the order of the results. */
    private UnsafeProjection result() {
      List<Expression> all = new ArrayList<>();
      for (Expression key : keys) {
        all.add(new BoundReference(all.size(), key.dataType(), key.nullable()));
      }
      int at = keys.size();
      for (int one : order) {
        if (one >= 0) {
          all.add(new BoundReference(keys.size() + fixed.size() + one, structs.get(one).dataType(), false));
        }
        for (int column = one; column < 0; column++) {
          all.add(new BoundReference(at, fixed.get(at - keys.size()).dataType(), true));
          at++;
        }
      }
      return UnsafeProjection.create(Seqs.of(all));
    }
  }

  private static final class Groups implements Iterator<InternalRow> {
    private final scala.collection.Iterator<InternalRow> rows;
    private final UnsafeProjection keys;
    private final MutableProjection updated;
    private final UnsafeProjection[] structs;
    private final UnsafeProjection result;
    private final JoinedRow both = new JoinedRow();
    private final JoinedRow all = new JoinedRow();
    private final GroupTable table;

    Groups(Task task, scala.collection.Iterator<InternalRow> rows) {
      this.rows = rows;
      keys = UnsafeProjection.create(Seqs.of(task.keys), Seqs.of(task.columns));
      List<Attribute> known = new ArrayList<>(task.fixed);
      known.addAll(task.columns);
      updated = MutableProjection$.MODULE$.create(Seqs.of(task.updated), Seqs.of(known));
      int count = task.structs.size();
      structs = new UnsafeProjection[count];
      var choices = new GroupTable.Choice[count];
      for (int one = 0; one < count; one++) {
        CreateNamedStruct struct = task.structs.get(one);
        structs[one] = UnsafeProjection.create(struct.valExprs(), Seqs.of(task.columns));
        var order = GenerateOrdering$.MODULE$.create((StructType) struct.dataType());
        choices[one] = new GroupTable.Choice(order, task.isGreatest.get(one), ((StructType) struct.dataType()).length());
      }
      UnsafeRow initial = UnsafeProjection.create(Seqs.of(task.initial)).apply(InternalRow.empty());
      table = new GroupTable(task.bytes, task.keys.size(), initial.copy(), choices);
      result = task.result();
    }

    @Override
    public boolean hasNext() {
      return table.hasNext() || rows.hasNext();
    }

    @Override
    public InternalRow next() {
      if (!table.hasNext()) {
        read();
      }
      table.next();
      return result.apply(all.apply(both.apply(table.key, table.fixed), table.winners));
    }

    private void read() {
      table.clear();
      while (rows.hasNext() && !table.isFull()) {
        InternalRow row = rows.next();
        table.find(keys.apply(row));
        updated.target(table.fixed).apply(both.apply(table.fixed, row));
        for (int one = 0; one < structs.length; one++) {
          table.offer(one, structs[one].apply(row));
        }
      }
      table.rewind();
    }
  }
}
