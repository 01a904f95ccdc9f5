package twinlake.reading;

import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ShowTables;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.util.StringUtils;
import org.apache.spark.sql.execution.command.ShowNamespacesCommand;
import org.apache.spark.sql.execution.command.ShowViewsCommand;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.FunctionConverters;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import twinlake.lake.Seqs;

/**
 * What SHOW answers to a reader, for drivers that list with statements: of schemas what JDBC's getSchemas does
 * ({@link Listing}), and where the connection has set {@code twinlake.listing=hive}, of tables and views their names
 * alone, as Hive does. Spark's answer begins with the schema, which a driver made for Hive takes for the table's name.
 */
public final class ShownNames extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  static final String LISTING = "twinlake.listing";
  private static final String HIVE = "hive";

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectPostHocResolutionRule(FunctionConverters.asScalaFromFunction(Answered::new));
    return BoxedUnit.UNIT;
  }

  private static final class Answered extends Rule<LogicalPlan> {
    private final SparkSession session;

    Answered(SparkSession session) {
      this.session = session;
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
      if (ReadOnly.isOwnerSession(session)) {
        return plan;
      }
      if (plan instanceof ShowNamespacesCommand asked && asked.child() instanceof ResolvedNamespace of
          && parts(of).isEmpty()) {
        return shown(new Listing(session).schemas(null), asked.pattern(), column(asked.output(), 1));
      }
      boolean isHive = session.conf().get(LISTING, "").equals(HIVE);
      if (!isHive && !Rights.of(session).areAll()) {
        return theirs(plan);
      }
      if (!isHive) {
        return plan;
      }
      if (plan instanceof ShowTables asked && asked.namespace() instanceof ResolvedNamespace of
          && parts(of).size() == 1) {
        return names(parts(of).get(0), asked.pattern(), asked.output());
      }
      return plan instanceof ShowViewsCommand asked
          ? names(asked.databaseName(), asked.tableIdentifierPattern(), asked.output()) : plan;
    }

    /** What Spark answers, of what the reader has a right to. */
    private LogicalPlan theirs(LogicalPlan plan) {
      if (plan instanceof ShowTables asked && asked.namespace() instanceof ResolvedNamespace of && parts(of).size() == 1) {
        return listed(parts(of).get(0), asked.pattern(), asked.output());
      }
      return plan instanceof ShowViewsCommand asked
          ? listed(asked.databaseName(), asked.tableIdentifierPattern(), asked.output()) : plan;
    }

    /** Rows of schema, name and false: none of them is temporary. */
    private LogicalPlan listed(String schema, Option<String> pattern, Seq<Attribute> output) {
      List<Row> rows = fitting(new Listing(session).names(schema), pattern).stream()
          .map(name -> RowFactory.create(schema, name, false)).toList();
      return LocalRows.of(output, rows);
    }

    private LogicalPlan names(String schema, Option<String> pattern, Seq<Attribute> output) {
      return shown(new Listing(session).names(schema), pattern, column(output, 2)); // namespace, name, isTemporary
    }

    private static LogicalPlan shown(List<String> all, Option<String> pattern, Attribute output) {
      List<Row> rows = fitting(all, pattern).stream().map(RowFactory::create).toList();
      return LocalRows.of(Seqs.of(List.of(output)), rows);
    }

    private static List<String> fitting(List<String> all, Option<String> pattern) {
      Seq<String> names = Seqs.of(all);
      return CollectionConverters.asJava(
          pattern.isEmpty() ? names : StringUtils.filterPattern(names, pattern.get()));
    }

    private static List<String> parts(ResolvedNamespace of) {
      return CollectionConverters.asJava(of.namespace());
    }

    /** The column at this place, counted from 1. */
    private static Attribute column(Seq<Attribute> output, int place) {
      return CollectionConverters.asJava(output).get(place - 1);
    }
  }
}
