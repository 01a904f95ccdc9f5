package twinlake.reading;

import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetCatalogAndNamespace;
import org.apache.spark.sql.execution.command.SetNamespaceCommand;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A reader begins in `serve`, so a table needs no schema before its name. Drivers that are given no schema ask for
 * Spark's own `default`, which is empty: they get the same.
 */
public final class DefaultSchema {
  static final String SERVE = "serve";
  private static final String SPARKS = "default";

  private DefaultSchema() {}

  /** A session of its own for one reader, by the rights of this user; of the server itself where it is empty. */
  public static SparkSession begin(SparkSession owner, String user) {
    SparkSession session = owner.newSession();
    Rights.begin(session, user);
    SessionCatalog catalog = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalog();
    if (catalog.databaseExists(SERVE)) { // before the lake is followed there is none
      catalog.setCurrentDatabase(SERVE);
    }
    return session;
  }

  /** The statement, with `serve` for `default` where it is what is to be used from now on. */
  static LogicalPlan instead(LogicalPlan parsed) {
    if (parsed instanceof SetNamespaceCommand use && isSparks(use.namespace())) {
      return new SetNamespaceCommand(serve());
    }
    if (parsed instanceof SetCatalogAndNamespace use && use.child() instanceof UnresolvedNamespace of
        && isSparks(of.multipartIdentifier())) {
      return new SetCatalogAndNamespace(new UnresolvedNamespace(serve(), of.fetchMetadata()));
    }
    return parsed;
  }

  private static boolean isSparks(Seq<String> of) {
    List<String> name = CollectionConverters.asJava(of);
    return name.size() == 1 && name.get(0).equalsIgnoreCase(SPARKS);
  }

  private static Seq<String> serve() {
    return Seqs.of(List.of(SERVE));
  }
}
