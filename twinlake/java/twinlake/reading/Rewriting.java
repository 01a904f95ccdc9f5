package twinlake.reading;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** What takes the place of nodes of a plan, for Spark's own walk over it. */
abstract class Rewriting extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
  /** Null for a node that stays as it is. */
  abstract LogicalPlan rewritten(LogicalPlan node);

  @Override
  public final boolean isDefinedAt(LogicalPlan node) {
    return rewritten(node) != null;
  }

  @Override
  @SuppressWarnings("unchecked")
  public final <A extends LogicalPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
    LogicalPlan found = rewritten(node);
    return found == null ? otherwise.apply(node) : (B) found;
  }
}
