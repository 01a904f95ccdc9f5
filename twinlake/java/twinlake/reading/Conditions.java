package twinlake.reading;

import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute$;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.StructType;
import scala.runtime.AbstractPartialFunction;

/**
 * Conditions of the rows that somebody sees mean the same whatever their session is set to: the server's time zone, and
 * NULL, which is not true, where ANSI would raise an error that tells of a value.
 */
final class Conditions {
  private static final String ANSI = "spark.sql.ansi.enabled";

  private Conditions() {}

  /** What this parses, resolved over these columns, each of which it names again. */
  static Expression resolved(SparkSession session, StructType columns, Supplier<Expression> parsed) {
    SQLConf fixed = ReadOnly.ownersConf();
    fixed.setConfString(ANSI, "false");
    var analyzer = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().analyzer();
    LogicalPlan found = SQLConf$.MODULE$.withExistingConf(fixed, () -> analyzer.executeAndCheck(
        new Filter(parsed.get(), LocalRows.of(columns, List.of())), Ending.tracker()));
    return (Expression) ((Filter) found).condition().transformUp(new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(Expression part) {
        return part instanceof AttributeReference;
      }

      @Override
      public Expression apply(Expression part) {
        return UnresolvedAttribute$.MODULE$.quoted(((AttributeReference) part).name());
      }
    });
  }
}
