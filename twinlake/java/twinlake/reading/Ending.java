package twinlake.reading;

import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.Option;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.FunctionConverters;

/**
 * Ends a statement whose client has left while it is parsed, analysed or planned: Spark looks at interrupts only where
 * it waits. Its thread is interrupted, which is asked here after each rule of the analyzer, in each round of it and of
 * the optimizer, and for each node of the plan.
 */
public final class Ending {
  private static final ConcurrentHashMap<String, Ending> RUNNING = new ConcurrentHashMap<>();

  private final Thread thread = Thread.currentThread();
  private boolean hasEnded = false;

  private Ending() {}

  /** This thread's statement has this name until it is {@link #ended}. */
  public static void begin(String name) {
    RUNNING.put(name, new Ending());
  }

  /** Ends what the thread does; nothing where it has ended. */
  public static void cancel(String name) {
    Ending one = RUNNING.get(name);
    if (one != null) {
      one.interrupt();
    }
  }

  /** Whatever the thread does next is not interrupted. */
  public static void ended(String name) {
    Ending one = RUNNING.remove(name);
    if (one != null) {
      one.end();
    }
  }

  private synchronized void interrupt() {
    if (!hasEnded) {
      thread.interrupt();
    }
  }

  private synchronized void end() {
    hasEnded = true;
    if (thread == Thread.currentThread()) {
      Thread.interrupted();
    }
  }

  static void check() {
    if (Thread.currentThread().isInterrupted()) {
      throw cancelled();
    }
  }

  static IllegalStateException cancelled() {
    return new IllegalStateException("the statement was cancelled");
  }

  /** For an analysis: Spark tells it of each rule that it has applied. */
  static QueryPlanningTracker tracker() {
    return new QueryPlanningTracker(Option.empty()) {
      @Override
      public void recordRuleInvocation(String rule, long nanoseconds, boolean effective) {
        check();
        super.recordRuleInvocation(rule, nanoseconds, effective);
      }
    };
  }

  static void watch(SparkSessionExtensions extensions) {
    // what makes rows of a result is analysed without a tracker
    extensions.injectResolutionRule(FunctionConverters.asScalaFromFunction(session -> new Looking()));
    extensions.injectOptimizerRule(FunctionConverters.asScalaFromFunction(session -> new Looking()));
    extensions.injectPlannerStrategy(FunctionConverters.asScalaFromFunction(session -> new Planning()));
  }

  private static final class Looking extends Rule<LogicalPlan> {
    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      check();
      return plan;
    }
  }

  private static final class Planning extends SparkStrategy {
    @Override
    @SuppressWarnings({"unchecked", "rawtypes"})
    public Seq<SparkPlan> apply(LogicalPlan plan) {
      check();
      return (Seq) Nil$.MODULE$;
    }
  }
}
