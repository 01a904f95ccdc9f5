package twinlake.reading;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.GenerateExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec;
import org.apache.spark.sql.execution.joins.BroadcastNestedLoopJoinExec;
import org.apache.spark.sql.execution.joins.CartesianProductExec;
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec;
import org.apache.spark.sql.execution.joins.SortMergeJoinExec;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Nil$;
import scala.jdk.javaapi.FunctionConverters;

/**
 * A task whose statement has ended ends inside its loops, too. Spark looks only where it reads rows, and a batch of them
 * is enough for hours of pairs in a join, or of elements in explode after explode: such a task would keep its slot.
 *
 * <p>So the condition of each join asks for each pair whether the thread was interrupted, and a filter above each
 * generator for each row: a field that is read, about a nanosecond.
 */
public final class Loops {
  private Loops() {}

  static void watch(SparkSessionExtensions extensions) {
    extensions.injectColumnar(FunctionConverters.asScalaFromFunction(session -> new ColumnarRule() {
      @Override
      public Rule<SparkPlan> preColumnarTransitions() {
        return new Watching();
      }
    }));
  }

  /** True; called by the programs that Spark makes of a plan. TaskKilledException in a task that is to end. */
  public static boolean goOn() {
    if (Thread.currentThread().isInterrupted()) {
      TaskContext task = TaskContext.get();
      if (task != null) {
        task.killTaskIfInterrupted();
      }
    }
    return true;
  }

  private static final class Watching extends Rule<SparkPlan> {
    @Override
    public SparkPlan apply(SparkPlan plan) {
      SparkPlan over = (SparkPlan) plan.mapChildren(FunctionConverters.asScalaFromFunction(this::apply));
      if (over instanceof GenerateExec) {
        return new FilterExec(asking(), over);
      } else if (over instanceof BroadcastNestedLoopJoinExec join && isLoop(join.joinType(), join.condition())) {
        return join.copy(join.left(), join.right(), join.buildSide(), join.joinType(), asking(join.condition()));
      } else if (over instanceof CartesianProductExec join) {
        return join.copy(join.left(), join.right(), asking(join.condition()));
      } else if (over instanceof BroadcastHashJoinExec join && isLoop(join.joinType(), join.condition())) {
        return join.copy(join.leftKeys(), join.rightKeys(), join.joinType(), join.buildSide(), asking(join.condition()),
            join.left(), join.right(), join.isNullAwareAntiJoin());
      } else if (over instanceof ShuffledHashJoinExec join && isLoop(join.joinType(), join.condition())) {
        return join.copy(join.leftKeys(), join.rightKeys(), join.joinType(), join.buildSide(), asking(join.condition()),
            join.left(), join.right(), join.isSkewJoin());
      } else if (over instanceof SortMergeJoinExec join && isLoop(join.joinType(), join.condition())) {
        return join.copy(join.leftKeys(), join.rightKeys(), join.joinType(), asking(join.condition()), join.left(),
            join.right(), join.isSkewJoin());
      }
      return over;
    }

    /** Whether there is a row in the other relation takes one look, where there is no condition. */
    private static boolean isLoop(JoinType type, Option<Expression> condition) {
      boolean isLook = type == LeftSemi$.MODULE$ || type == LeftAnti$.MODULE$ || type instanceof ExistenceJoin;
      return condition.isDefined() || !isLook;
    }

    private static Option<Expression> asking(Option<Expression> condition) {
      return new Some<>(condition.isEmpty() ? asking() : new And(asking(), condition.get()));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Expression asking() {
      return new StaticInvoke(Loops.class, DataTypes.BooleanType, "goOn", (scala.collection.immutable.Seq) Nil$.MODULE$,
          (scala.collection.immutable.Seq) Nil$.MODULE$, false, false, true, Option.empty());
    }
  }
}
