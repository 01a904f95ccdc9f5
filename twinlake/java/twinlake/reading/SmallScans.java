package twinlake.reading;

import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.UnaryExecNode;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy;
import org.apache.spark.sql.execution.exchange.REPARTITION_BY_COL$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import scala.Option;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.FunctionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Few bytes are read by one task, so that nothing above has to exchange rows: to group a small table is one job.
 *
 * <p>An extension of its own, before Delta's: the first strategy that knows how to scan files is taken.
 */
public final class SmallScans extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  private static final long SMALL_BYTES = 8L << 20;

  /** Of a row: to count rows reads no column, and still opens each file. */
  private static final int LEAST = 8;

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectPlannerStrategy(FunctionConverters.asScalaFromFunction(InOneTask::new));
    extensions.injectColumnar(FunctionConverters.asScalaFromFunction(session -> new Together()));
    return BoxedUnit.UNIT;
  }

  private static final class InOneTask extends SparkStrategy {
    private final SparkSession session;

    InOneTask(SparkSession session) {
      this.session = session;
    }

    @Override
    public Seq<SparkPlan> apply(LogicalPlan plan) {
      SparkPlan prepared = PreparedScan.of(session, plan);
      if (prepared != null) {
        return List$.MODULE$.from(Option.apply(prepared));
      }
      Seq<SparkPlan> planned = FileSourceStrategy.apply(plan);
      List<SparkPlan> only = CollectionConverters.asJava(planned);
      if (only.size() != 1 || !isSmall(only.get(0))) {
        return planned;
      }
      return List$.MODULE$.from(Option.apply(new CoalesceExec(1, only.get(0))));
    }

    private static boolean isSmall(SparkPlan planned) {
      SparkPlan leaf = planned;
      while (leaf instanceof UnaryExecNode above) {
        leaf = above.child();
      }
      return leaf instanceof FileSourceScanExec scan
          && scan.relation().location() instanceof LiveFiles
          && read(scan) <= SMALL_BYTES;
    }

    /** About as many bytes as are read: a file has all columns, and a statement seldom asks for more than some. */
    private static double read(FileSourceScanExec scan) {
      double share = (double) Math.max(scan.requiredSchema().defaultSize(), LEAST) / scan.relation().dataSchema().defaultSize();
      return scan.selectedPartitions().totalFileSize() * share;
    }
  }

  /**
   * Rows that are in one part are together by whatever they are to be: views ask for that of many rows. Spark has no
   * other place for a rule over a plan that is not adaptive.
   */
  private static final class Together extends ColumnarRule {
    @Override
    public Rule<SparkPlan> preColumnarTransitions() {
      return new Rule<>() {
        @Override
        public SparkPlan apply(SparkPlan plan) {
          return (SparkPlan) plan.transformUp(new AbstractPartialFunction<SparkPlan, SparkPlan>() {
            @Override
            public boolean isDefinedAt(SparkPlan part) {
              return part instanceof ShuffleExchangeExec exchange
                  && exchange.shuffleOrigin() == REPARTITION_BY_COL$.MODULE$
                  && exchange.child().outputPartitioning() == SinglePartition$.MODULE$;
            }

            @Override
            public SparkPlan apply(SparkPlan exchange) {
              return ((ShuffleExchangeExec) exchange).child();
            }
          });
        }
      };
    }
  }
}
