package twinlake.lake;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BindReferences;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.MutableProjection;
import org.apache.spark.sql.catalyst.expressions.MutableProjection$;
import org.apache.spark.sql.catalyst.expressions.RowOrdering;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.package$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.ThetaSketchAgg;
import org.apache.spark.sql.catalyst.expressions.aggregate.ThetaSketchState;
import org.apache.spark.sql.catalyst.expressions.aggregate.UpdatableSketchBuffer;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.TaskCompletionListener;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction2;

/** Groups the rows of one partition; it may be sent to another machine. {@link HashedGroups} is its plan. */
final class GroupingTask
    extends AbstractFunction2<Object, scala.collection.Iterator<InternalRow>, scala.collection.Iterator<InternalRow>>
    implements Serializable {
  private static final long serialVersionUID = 1L;
  /** What an object of a group takes, about: a decimal, the row of them. */
  private static final long OBJECT_BYTES = 100;
  /** A sketch beside its table. */
  private static final long SKETCH_BYTES = 300;
  /** With fewer, what the table takes of the exchange behind it is worth less than it costs. */
  private static final int LEAST_ROWS_PER_GROUP = 2;
  private final long bytes;
  private final List<Expression> keys = new ArrayList<>();
  private final List<Attribute> columns = new ArrayList<>();
  private final Stored fixed = new Stored();
  private final Stored wide = new Stored();
  private final List<Expression> structs = new ArrayList<>();
  private final List<Boolean> isGreatest = new ArrayList<>();
  private final List<ThetaSketchAgg> sketches = new ArrayList<>();
  private final List<Column> parts = new ArrayList<>();

  /** A column of the parts, and where it is kept among those of its form. */
  private record Column(Form form, int at, DataType type) implements Serializable {}

  private enum Form { FIXED, STRUCT, SKETCH, WIDE }

  GroupingTask(HashedGroups plan) {
    bytes = plan.bytes;
    CollectionConverters.asJava(plan.keys).forEach(one -> keys.add((Expression) one));
    columns.addAll(CollectionConverters.asJava(plan.child.output()));
    for (AggregateExpression part : CollectionConverters.asJava(plan.aggregates)) {
      var aggregate = part.aggregateFunction();
      Expression struct = HashedGroups.chosen(aggregate);
      if (struct != null) {
        parts.add(new Column(Form.STRUCT, structs.size(), struct.dataType()));
        structs.add(struct);
        isGreatest.add(aggregate instanceof Max);
      } else if (aggregate instanceof ThetaSketchAgg sketch) {
        parts.add(new Column(Form.SKETCH, sketches.size(), DataTypes.BinaryType));
        sketches.add(sketch);
      } else {
        var declared = (DeclarativeAggregate) aggregate;
        List<? extends Attribute> stored = CollectionConverters.asJava(declared.aggBufferAttributes());
        boolean isFixed = stored.stream().allMatch(one -> UnsafeRow.isFixedLength(one.dataType()));
        Stored all = isFixed ? fixed : wide;
        for (Attribute column : stored) {
          parts.add(new Column(isFixed ? Form.FIXED : Form.WIDE, all.columns.size(), column.dataType()));
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
      int first = keys.size() + switch (one.form) {
        case FIXED -> 0;
        case WIDE -> fixed.columns.size();
        case STRUCT -> fixed.columns.size() + wide.columns.size();
        case SKETCH -> fixed.columns.size() + wide.columns.size() + structs.size();
      };
      all.add(new BoundReference(first + one.at, one.type, one.form != Form.SKETCH));
    }
    return UnsafeProjection.create(Seqs.of(all));
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
    /** How many entries the table of each sketch has room for. */
    private final long[] capacities;
    private final GenericInternalRow wide;

    Beside(int sketches, int wide) {
      this.sketches = new ThetaSketchState[sketches];
      this.capacities = new long[sketches];
      this.wide = new GenericInternalRow(wide);
    }
  }

  private static final class Groups implements Iterator<InternalRow> {
    private final List<Attribute> columns;
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
    private scala.collection.Iterator<InternalRow> rows;
    private Way way = Way.AS_THEY_COME;

    /** How rows come: once a full table has shown that few of them meet their group, sorted, and the groups after it few. */
    private enum Way { AS_THEY_COME, TO_BE_SORTED, SORTED }

    Groups(GroupingTask task, scala.collection.Iterator<InternalRow> rows) {
      this.rows = rows;
      columns = task.columns;
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
      var bound = package$.MODULE$.AttributeSeq(Seqs.of(task.columns));
      sketches = task.sketches.stream()
          .map(one -> BindReferences.bindReference(one, bound, false)).toArray(ThetaSketchAgg[]::new);
      kept = new GenericInternalRow(structs.length + sketches.length);
      UnsafeRow begun = UnsafeProjection.create(Seqs.of(task.fixed.initial)).apply(InternalRow.empty());
      TaskContext context = TaskContext.get();
      table = new GroupTable<>(
          task.bytes, new GroupMemory(context.taskMemoryManager()), task.keys.size(), begun.copy(), choices,
          this::beside);
      TaskCompletionListener given = ended -> table.clear(); // a limit above may want no more of it
      context.addTaskCompletionListener(given);
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
        made.capacities[one] = firstCapacity(sketches[one].lgNomEntries());
        table.grown(SKETCH_BYTES + 8 * made.capacities[one]);
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
    private static long firstCapacity(int lgNominal) {
      return 32L << (lgNominal < 5 ? 0 : (lgNominal - 4) % 3);
    }

    /** A table that is half full becomes eight times as large, up to twice the nominal entries. */
    private void sketch(Beside group, InternalRow row) {
      for (int one = 0; one < sketches.length; one++) {
        ThetaSketchState state = sketches[one].update(group.sketches[one], row);
        group.sketches[one] = state;
        long capacity = group.capacities[one];
        if (state instanceof UpdatableSketchBuffer held && 2 * held.sketch().getRetainedEntries() > capacity
            && capacity < 2L << sketches[one].lgNomEntries()) {
          group.capacities[one] = 8 * capacity;
          table.grown(8 * 7 * capacity);
        }
      }
    }

    private void read() {
      if (way == Way.TO_BE_SORTED) {
        table.clear();
        rows = RowsByHash.sorted(rows, columns, keys);
        way = Way.SORTED;
      }
      table.begin(way == Way.SORTED);
      long read = 0;
      while (rows.hasNext() && !table.isFull()) {
        InternalRow row = rows.next();
        read++;
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
      if (way == Way.AS_THEY_COME && table.isFull() && read < LEAST_ROWS_PER_GROUP * table.size()) {
        way = Way.TO_BE_SORTED;
      }
      table.rewind();
    }
  }
}
