package twinlake.lake;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.BindReferences;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.MutableProjection;
import org.apache.spark.sql.catalyst.expressions.MutableProjection$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.RowOrdering;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.package$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial$;
import org.apache.spark.sql.catalyst.expressions.aggregate.ThetaSketchAgg;
import org.apache.spark.sql.catalyst.expressions.aggregate.ThetaSketchState;
import org.apache.spark.sql.catalyst.expressions.aggregate.UpdatableSketchBuffer;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;

/**
 * Rows aggregated in part, by hash, in the order in which they come: the greatest or least struct of each group, theta
 * sketches, and beside them what Spark updates in place. A group comes more than once where all would take more memory
 * than they may: whoever aggregates the parts expects that of parts.
 */
public final class HashedGroups extends SparkPlan {
  /** What an object of a group takes, about: a decimal, the row of them. */
  private static final long OBJECT_BYTES = 100;
  /** A sketch beside its table. */
  private static final long SKETCH_BYTES = 300;
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
  private static Expression chosen(AggregateFunction aggregate) {
    boolean chooses = aggregate instanceof Max || aggregate instanceof Min;
    return chooses && aggregate.dataType() instanceof StructType
        ? CollectionConverters.asJava(aggregate.children()).get(0) : null;
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

  /** What one partition needs; it may be sent to another machine. */
  private static final class Task
      extends AbstractFunction2<Object, scala.collection.Iterator<InternalRow>, scala.collection.Iterator<InternalRow>>
      implements Serializable {
    private static final long serialVersionUID = 1L;
    private final long bytes;
    private final List<Expression> keys = new ArrayList<>();
    private final List<Attribute> columns = new ArrayList<>();
    private final Stored fixed = new Stored();
    private final Stored wide = new Stored();
    private final List<Expression> structs = new ArrayList<>();
    private final List<Boolean> isGreatest = new ArrayList<>();
    private final List<ThetaSketchAgg> sketches = new ArrayList<>();
    private final List<Column> parts = new ArrayList<>();

    /** A column of the parts, and where it is kept among those of its sort. */
    private record Column(Sort sort, int at, DataType type) implements Serializable {}

    private enum Sort { FIXED, STRUCT, SKETCH, WIDE }

    Task(HashedGroups plan) {
      bytes = plan.bytes;
      CollectionConverters.asJava(plan.keys).forEach(one -> keys.add((Expression) one));
      columns.addAll(CollectionConverters.asJava(plan.child.output()));
      for (AggregateExpression part : CollectionConverters.asJava(plan.aggregates)) {
        var aggregate = part.aggregateFunction();
        Expression struct = chosen(aggregate);
        if (struct != null) {
          parts.add(new Column(Sort.STRUCT, structs.size(), struct.dataType()));
          structs.add(struct);
          isGreatest.add(aggregate instanceof Max);
        } else if (aggregate instanceof ThetaSketchAgg sketch) {
          parts.add(new Column(Sort.SKETCH, sketches.size(), DataTypes.BinaryType));
          sketches.add(BindReferences.bindReference(sketch, package$.MODULE$.AttributeSeq(Seqs.of(columns)), false));
        } else {
          var declared = (DeclarativeAggregate) aggregate;
          List<? extends Attribute> stored = CollectionConverters.asJava(declared.aggBufferAttributes());
          boolean isFixed = stored.stream().allMatch(one -> UnsafeRow.isFixedLength(one.dataType()));
          Stored all = isFixed ? fixed : wide;
          for (Attribute column : stored) {
            parts.add(new Column(isFixed ? Sort.FIXED : Sort.WIDE, all.columns.size(), column.dataType()));
            all.columns.add(column);
          }
          all.initial.addAll(CollectionConverters.asJava(declared.initialValues()));
          all.updated.addAll(CollectionConverters.asJava(declared.updateExpressions()));
        }
      }
    }

    @Override
    public scala.collection.Iterator<InternalRow> apply(Object partition, scala.collection.Iterator<InternalRow> rows) {
      return CollectionConverters.asScala(new Groups(this, rows));
    }

    /** The keys, then the parts in their order, out of keys, fixed and wide columns, structs and sketches. */
    private UnsafeProjection result() {
      List<Expression> all = new ArrayList<>();
      for (Expression key : keys) {
        all.add(new BoundReference(all.size(), key.dataType(), key.nullable()));
      }
      for (Column one : parts) {
        int first = keys.size() + switch (one.sort) {
          case FIXED -> 0;
          case WIDE -> fixed.columns.size();
          case STRUCT -> fixed.columns.size() + wide.columns.size();
          case SKETCH -> fixed.columns.size() + wide.columns.size() + structs.size();
        };
        all.add(new BoundReference(first + one.at, one.type, one.sort != Sort.SKETCH));
      }
      return UnsafeProjection.create(Seqs.of(all));
    }
  }

  /** Columns of aggregates that Spark computes by expressions, which begin and go on from row to row. */
  private static final class Stored implements Serializable {
    private static final long serialVersionUID = 1L;
    private final List<Attribute> columns = new ArrayList<>();
    private final List<Expression> initial = new ArrayList<>();
    private final List<Expression> updated = new ArrayList<>();

    private MutableProjection update(List<Attribute> rows) {
      List<Attribute> known = new ArrayList<>(columns);
      known.addAll(rows);
      return MutableProjection$.MODULE$.create(Seqs.of(updated), Seqs.of(known));
    }
  }

  /** What a group has as objects: sketches, and decimals that as bytes would have to be parsed for each row. */
  private static final class Beside {
    private final ThetaSketchState[] sketches;
    /** Of the table of each sketch. */
    private final long[] places;
    private final GenericInternalRow wide;

    Beside(int sketches, int wide) {
      this.sketches = new ThetaSketchState[sketches];
      this.places = new long[sketches];
      this.wide = new GenericInternalRow(wide);
    }
  }

  private static final class Groups implements Iterator<InternalRow> {
    private final scala.collection.Iterator<InternalRow> rows;
    private final UnsafeProjection keys;
    private final MutableProjection fixed;
    private final MutableProjection wide;
    private final MutableProjection initial;
    private final UnsafeProjection[] structs;
    private final ThetaSketchAgg[] sketches;
    private final UnsafeProjection result;
    private final JoinedRow both = new JoinedRow();
    private final GenericInternalRow kept;
    private final int wides;
    private final GroupTable<Beside> table;

    Groups(Task task, scala.collection.Iterator<InternalRow> rows) {
      this.rows = rows;
      keys = UnsafeProjection.create(Seqs.of(task.keys), Seqs.of(task.columns));
      fixed = task.fixed.update(task.columns);
      wide = task.wide.update(task.columns);
      wides = task.wide.columns.size();
      initial = MutableProjection$.MODULE$.create(Seqs.of(task.wide.initial), Seqs.of(List.of()));
      structs = new UnsafeProjection[task.structs.size()];
      var choices = new GroupTable.Choice[structs.length];
      for (int one = 0; one < structs.length; one++) {
        Expression struct = task.structs.get(one);
        var type = (StructType) struct.dataType();
        structs[one] = UnsafeProjection.create(Seqs.of(List.of(struct)), Seqs.of(task.columns));
        List<DataType> fields = Arrays.stream(type.fields()).map(StructField::dataType).toList();
        choices[one] = new GroupTable.Choice(
            RowOrdering.createNaturalAscendingOrdering(Seqs.of(fields)), task.isGreatest.get(one), fields.size());
      }
      sketches = task.sketches.toArray(ThetaSketchAgg[]::new);
      kept = new GenericInternalRow(structs.length + sketches.length);
      UnsafeRow begun = UnsafeProjection.create(Seqs.of(task.fixed.initial)).apply(InternalRow.empty());
      table = new GroupTable<>(task.bytes, task.keys.size(), begun.copy(), choices, this::beside);
      result = task.result();
    }

    /** For a new group; null where no group has any. */
    private Beside beside() {
      if (wides == 0 && sketches.length == 0) {
        return null;
      }
      var made = new Beside(sketches.length, wides);
      for (int one = 0; one < sketches.length; one++) {
        made.sketches[one] = sketches[one].createAggregationBuffer();
        made.places[one] = firstPlaces(sketches[one].lgNomEntries());
        table.grown(SKETCH_BYTES + 8 * made.places[one]);
      }
      initial.target(made.wide).apply(InternalRow.empty());
      table.grown(OBJECT_BYTES * (1 + wides));
      return made;
    }

    @Override
    public boolean hasNext() {
      if (table.hasNext() || rows.hasNext()) {
        return true;
      }
      table.clear(); // who sorts what came of it keeps this as long as its task goes on
      return false;
    }

    @Override
    public InternalRow next() {
      if (!table.hasNext()) {
        read();
      }
      table.next();
      for (int one = 0; one < structs.length; one++) {
        kept.update(one, table.hasStruct[one] ? table.structs[one] : null);
      }
      for (int one = 0; one < sketches.length; one++) {
        kept.update(structs.length + one, sketches[one].serialize(table.beside.sketches[one]));
      }
      InternalRow found = new JoinedRow(table.key, table.fixed);
      found = wides == 0 ? found : new JoinedRow(found, table.beside.wide);
      return result.apply(both.apply(found, kept));
    }

    /** A table has 32 to 128 places of 8 bytes at first, so that it comes to twice the nominal entries by eights. */
    private static long firstPlaces(int lgNominal) {
      return 32L << (lgNominal < 5 ? 0 : (lgNominal - 4) % 3);
    }

    /** A table that is half full becomes eight times as large, up to twice the nominal entries. */
    private void sketch(Beside group, InternalRow row) {
      for (int one = 0; one < sketches.length; one++) {
        ThetaSketchState state = sketches[one].update(group.sketches[one], row);
        group.sketches[one] = state;
        long places = group.places[one];
        if (state instanceof UpdatableSketchBuffer held && 2 * held.sketch().getRetainedEntries() > places
            && places < 2L << sketches[one].lgNomEntries()) {
          group.places[one] = 8 * places;
          table.grown(8 * 7 * places);
        }
      }
    }

    private void read() {
      table.begin();
      while (rows.hasNext() && !table.isFull()) {
        InternalRow row = rows.next();
        table.find(keys.apply(row));
        fixed.target(table.fixed).apply(both.apply(table.fixed, row));
        if (wides > 0) {
          wide.target(table.beside.wide).apply(both.apply(table.beside.wide, row));
        }
        for (int one = 0; one < structs.length; one++) {
          UnsafeRow struct = structs[one].apply(row);
          if (!struct.isNullAt(0)) {
            table.offer(one, struct.getStruct(0, table.structs[one].numFields()));
          }
        }
        sketch(table.beside, row);
      }
      table.rewind();
    }
  }
}
