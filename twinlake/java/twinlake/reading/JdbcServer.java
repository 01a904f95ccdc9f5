package twinlake.reading;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.List;
import org.apache.hadoop.hive.common.ServerUtils;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hive.service.CompositeService;
import org.apache.hive.service.cli.CLIService;
import org.apache.hive.service.cli.session.SessionManager;
import org.apache.hive.service.server.HiveServer2;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.hive.HiveUtils$;
import org.apache.spark.sql.hive.thriftserver.HiveThriftServer2;
import org.apache.spark.sql.hive.thriftserver.HiveThriftServer2$;
import org.apache.spark.sql.hive.thriftserver.SparkSQLSessionManager;

/**
 * Spark's Thrift server, with {@link Metadata} for the operations that Spark leaves to Hive's metastore.
 *
 * <p>Spark makes and starts its server in one call. Here operations and listener are exchanged in between, so that no connection
 * comes to Spark's own; a Spark whose fields have other names does not start.
 */
public final class JdbcServer {
  private JdbcServer() {}

  /** Listens from now on, until the process ends; what it returns counts how statements end. */
  public static JdbcOutcomes start(SparkSession session) throws ReflectiveOperationException {
    HiveThriftServer2.systemExitOnError().set(false);
    SparkContext context = session.sparkContext();
    HiveConf conf =
        HiveUtils$.MODULE$.newClientForExecution(context.conf(), session.sessionState().newHadoopConf()).conf();
    ServerUtils.cleanUpScratchDir(conf);
    HiveThriftServer2 server = new HiveThriftServer2(session);
    server.init(conf);
    Object sessions = get(CLIService.class, "sessionManager", get(HiveServer2.class, "cliService", server));
    Metadata operations = new Metadata();
    set(SessionManager.class, "operationManager", sessions, operations);
    set(SparkSQLSessionManager.class, "sparkSqlOperationManager", sessions, operations);
    accept(server, conf);
    listen(server, context); // Spark does this last, and the first to connect meets a null
    JdbcOutcomes outcomes = JdbcOutcomes.of(session);
    server.start();
    return outcomes;
  }

  /** The listener is the last of the server's services, and was only set up by now. */
  private static void accept(HiveThriftServer2 server, HiveConf conf) throws ReflectiveOperationException {
    Clients clients = new Clients((CLIService) get(HiveServer2.class, "cliService", server));
    clients.init(conf);
    Object before = get(HiveServer2.class, "thriftCLIService", server);
    @SuppressWarnings("unchecked")
    List<Object> services = (List<Object>) get(CompositeService.class, "serviceList", server);
    services.replaceAll(one -> one == before ? clients : one);
    set(HiveServer2.class, "thriftCLIService", server, clients);
  }

  private static void listen(HiveThriftServer2 server, SparkContext context) throws ReflectiveOperationException {
    Method method = HiveThriftServer2$.class.getDeclaredMethod(
        "createListenerAndUI", HiveThriftServer2.class, SparkContext.class);
    method.setAccessible(true);
    method.invoke(HiveThriftServer2$.MODULE$, server, context);
  }

  static Object get(Class<?> declaring, String name, Object of) throws ReflectiveOperationException {
    return field(declaring, name).get(of);
  }

  static void set(Class<?> declaring, String name, Object of, Object value)
      throws ReflectiveOperationException {
    field(declaring, name).set(of, value);
  }

  private static Field field(Class<?> declaring, String name) throws ReflectiveOperationException {
    Field field = declaring.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }
}
