package twinlake.reading;

import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetCatalogAndNamespace;
import org.apache.spark.sql.execution.command.SetCommand;
import org.apache.spark.sql.execution.command.SetNamespaceCommand;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import twinlake.lake.Seqs;

/**
 * A reader begins in `serve`, so a table needs no schema before its name. Drivers that are given no schema ask for
 * Spark's own `default`, which is empty: they get the same.
 */
public final class DefaultSchema {
  static final String SERVE = "serve";
  private static final String SPARKS = "default";
  private static final String ALONE = "each statement has a session of its own here, so it would hold for none";

  private static final Set<SparkSession> OF_ONE_STATEMENT =
      Collections.newSetFromMap(Collections.synchronizedMap(new WeakHashMap<>()));

  private DefaultSchema() {}

  /** Refused what the next statement would be expected to know, in a session that has no next one. */
  static void refuseLasting(SparkSession session, LogicalPlan plan) {
    if (!OF_ONE_STATEMENT.contains(session)) {
      return;
    }
    if (plan instanceof SetCommand set && set.kv().isDefined() && set.kv().get()._1().equals(Moments.SETTING)
        && set.kv().get()._2().isDefined()) {
      throw new Refused("SET " + Moments.SETTING, ALONE, "as_of beside the statement (`--as-of`, or Flight's header)");
    }
    if (plan instanceof SetNamespaceCommand use && !isServe(use.namespace())
        || plan instanceof SetCatalogAndNamespace other && other.child() instanceof ResolvedNamespace of && !isServe(of.namespace())) {
      throw new Refused("USE", ALONE, "the schema before the name of the table");
    }
  }

  private static boolean isServe(Seq<String> of) {
    List<String> name = CollectionConverters.asJava(of);
    return !name.isEmpty() && name.get(name.size() - 1).equalsIgnoreCase(SERVE);
  }

  /** A session of its own for one reader, by the rights of this user; of the server itself where it is empty. */
  public static SparkSession begin(SparkSession owner, String user) {
    SparkSession session = owner.newSession();
    OF_ONE_STATEMENT.add(session);
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
