package twinlake.reading;

import java.sql.DatabaseMetaData;
import java.util.List;
import java.util.Map;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.hive.service.cli.OperationState;
import org.apache.hive.service.cli.RowSet;
import org.apache.hive.service.cli.operation.ExecuteStatementOperation;
import org.apache.hive.service.cli.operation.GetCatalogsOperation;
import org.apache.hive.service.cli.operation.GetColumnsOperation;
import org.apache.hive.service.cli.operation.GetCrossReferenceOperation;
import org.apache.hive.service.cli.operation.GetFunctionsOperation;
import org.apache.hive.service.cli.operation.GetPrimaryKeysOperation;
import org.apache.hive.service.cli.operation.GetSchemasOperation;
import org.apache.hive.service.cli.operation.GetTableTypesOperation;
import org.apache.hive.service.cli.operation.GetTablesOperation;
import org.apache.hive.service.cli.operation.GetTypeInfoOperation;
import org.apache.hive.service.cli.operation.MetadataOperation;
import org.apache.hive.service.cli.operation.Operation;
import org.apache.hive.service.cli.operation.OperationManager;
import org.apache.hive.service.cli.session.HiveSession;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.hive.thriftserver.SparkGetTypeInfoOperation;
import org.apache.spark.sql.hive.thriftserver.server.SparkSQLOperationManager;

/**
 * What DatabaseMetaData asks, answered from the catalog of views alone ({@link Listing}), and statements.
 *
 * <p>Spark's and Hive's own operations ask Hive's authorization first, which opens a metastore; there is none, so the
 * first of them fails in each session. They also list the schemas that only the views read.
 */
final class Metadata extends SparkSQLOperationManager {
  private static final String CATALOG = ""; // as Hive and Spark say that there are none

  /** What one operation adds to its rows. */
  private interface Rows {
    void add(RowSet rows);
  }

  /** Operation.setState, which only an operation itself may call. */
  private interface State {
    void set(OperationState state) throws HiveSQLException;
  }

  /** Spark's class looks for the operations in the class that its own extends, which it is itself from here. */
  Metadata() throws ReflectiveOperationException {
    Object operations = JdbcServer.get(OperationManager.class, "handleToOperation", this);
    JdbcServer.set(SparkSQLOperationManager.class, "handleToOperation", this, operations);
  }

  @Override
  public ExecuteStatementOperation newExecuteStatementOperation(
      HiveSession session, String statement, Map<String, String> settings, boolean isAsync, long limitSeconds) {
    return kept(new Statement(sessionOf(session), session, statement, settings, isAsync, limitSeconds));
  }

  @Override
  public GetCatalogsOperation newGetCatalogsOperation(HiveSession session) {
    return kept(new GetCatalogsOperation(session) {
      @Override
      public void runInternal() throws HiveSQLException {
        answer(next -> setState(next), rowSet, rows -> {});
      }
    });
  }

  @Override
  public GetSchemasOperation newGetSchemasOperation(HiveSession session, String catalog, String schema) {
    return kept(new GetSchemasOperation(session, catalog, schema) {
      @Override
      public void runInternal() throws HiveSQLException {
        answer(next -> setState(next), rowSet, rows ->
            listing(session).schemas(schema).forEach(name -> rows.addRow(new Object[] {name, CATALOG})));
      }
    });
  }

  @Override
  public MetadataOperation newGetTablesOperation(
      HiveSession session, String catalog, String schema, String table, List<String> types) {
    return kept(new GetTablesOperation(session, catalog, schema, table, types) {
      @Override
      public void runInternal() throws HiveSQLException {
        boolean wanted = types == null || types.isEmpty() || types.stream().anyMatch("VIEW"::equalsIgnoreCase);
        answer(next -> setState(next), rowSet, rows -> {
          if (wanted) {
            listing(session).views(schema, table).forEach(view -> rows.addRow(new Object[] {
                CATALOG, view.database(), view.identifier().table(), "VIEW", view.comment().getOrElse(() -> ""),
                null, null, null, null, null}));
          }
        });
      }
    });
  }

  @Override
  public GetColumnsOperation newGetColumnsOperation(
      HiveSession session, String catalog, String schema, String table, String column) {
    return kept(new GetColumnsOperation(session, catalog, schema, table, column) {
      @Override
      public void runInternal() throws HiveSQLException {
        answer(next -> setState(next), rowSet, rows ->
            listing(session).views(schema, table).forEach(view -> Columns.of(view, column).forEach(rows::addRow)));
      }
    });
  }

  @Override
  public GetFunctionsOperation newGetFunctionsOperation(
      HiveSession session, String catalog, String schema, String function) {
    return kept(new GetFunctionsOperation(session, catalog, schema, function) {
      @Override
      public void runInternal() throws HiveSQLException {
        answer(next -> setState(next), rowSet, rows -> {
          if (Pattern.of(schema).isEverything()) { // Spark's functions are of no schema
            for (ExpressionInfo one : listing(session).functions(function)) {
              rows.addRow(new Object[] {
                  null, null, one.getName(), "Usage: " + one.getUsage().strip(),
                  DatabaseMetaData.functionResultUnknown, one.getClassName()});
            }
          }
        });
      }
    });
  }

  @Override
  public GetTableTypesOperation newGetTableTypesOperation(HiveSession session) {
    return kept(new GetTableTypesOperation(session) {
      @Override
      public void runInternal() throws HiveSQLException {
        answer(next -> setState(next), rowSet, rows -> {
          rows.addRow(new Object[] {"TABLE"}); // tools ask for both, and some for one that is not listed not at all
          rows.addRow(new Object[] {"VIEW"});
        });
      }
    });
  }

  @Override
  public GetTypeInfoOperation newGetTypeInfoOperation(HiveSession session) {
    return kept(new SparkGetTypeInfoOperation(sessionOf(session), session) {
      @Override
      protected boolean isAuthV2Enabled() {
        return false;
      }
    });
  }

  @Override
  public GetPrimaryKeysOperation newGetPrimaryKeysOperation(
      HiveSession session, String catalog, String schema, String table) {
    return kept(new GetPrimaryKeysOperation(session, catalog, schema, table) {
      @Override
      public void runInternal() throws HiveSQLException {
        answer(next -> setState(next), null, rows -> {}); // views have none
      }
    });
  }

  @Override
  public GetCrossReferenceOperation newGetCrossReferenceOperation(
      HiveSession session, String primaryCatalog, String primarySchema, String primaryTable,
      String foreignCatalog, String foreignSchema, String foreignTable) {
    return kept(new GetCrossReferenceOperation(
        session, primaryCatalog, primarySchema, primaryTable, foreignCatalog, foreignSchema, foreignTable) {
      @Override
      public void runInternal() throws HiveSQLException {
        answer(next -> setState(next), null, rows -> {});
      }
    });
  }

  private <T extends Operation> T kept(T operation) {
    handleToOperation().put(operation.getHandle(), operation);
    return operation;
  }

  private SparkSession sessionOf(HiveSession session) {
    SparkSession found = sessionToContexts().get(session.getSessionHandle());
    if (found == null) {
      throw new IllegalStateException("the session was closed; connect again");
    }
    Sessions.uses(session, found);
    return found;
  }

  private Listing listing(HiveSession session) {
    return new Listing(sessionOf(session));
  }

  private static void answer(State state, RowSet rows, Rows found) throws HiveSQLException {
    state.set(OperationState.RUNNING);
    try {
      found.add(rows);
    } catch (RuntimeException failed) {
      state.set(OperationState.ERROR);
      throw new HiveSQLException(failed.getMessage(), failed);
    }
    state.set(OperationState.FINISHED);
  }
}
