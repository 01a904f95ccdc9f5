package twinlake.reading;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;
import twinlake.lake.Seqs;

/**
 * `information_schema` as SQL's standard has it, of what a reader is shown ({@link Listing}): `schemata`, `tables` and
 * `columns`, each with the words of the contracts beside; and `table_status`, what the lake server last reported of
 * the live tables. It is no schema of the catalog: a statement that names a table of it reads these rows.
 */
public final class InformationSchema {
  private static final String NAME = "information_schema", CATALOG = "spark_catalog";
  private static final StructType SCHEMATA = StructType.fromDDL(
      "catalog_name STRING, schema_name STRING, schema_owner STRING");
  private static final StructType TABLES = StructType.fromDDL(
      "table_catalog STRING, table_schema STRING, table_name STRING, table_type STRING, comment STRING");
  private static final StructType COLUMNS = StructType.fromDDL(
      "table_catalog STRING, table_schema STRING, table_name STRING, column_name STRING, ordinal_position INT, "
          + "is_nullable STRING, data_type STRING, numeric_precision INT, numeric_scale INT, comment STRING");

  private static final StructType TABLE_STATUS = StructType.fromDDL(
      "table_schema STRING, table_name STRING, version STRING, release BIGINT, data_time TIMESTAMP, position STRING, "
          + "is_stalled BOOLEAN, stalled_because STRING, is_certified_equal BOOLEAN, certified_at TIMESTAMP, "
          + "certificate_covers STRING, reported_at TIMESTAMP");
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int BECAUSE = TABLE_STATUS.fieldIndex("stalled_because");
  private static volatile List<Row> statuses = List.of();
  private static volatile String withheld = "";

  private InformationSchema() {}

  /**
   * `json` is a list of what the lake server reports of each live table, see `reading/reports.py`; who does not see
   * everything reads `instead` why one is stalled.
   */
  public static void report(String json, String instead) throws JsonProcessingException {
    withheld = instead;
    List<Row> found = new ArrayList<>();
    for (JsonNode one : JSON.readTree(json)) {
      String why = one.path("stalled_because").textValue();
      JsonNode equal = one.path("equal");
      found.add(RowFactory.create(
          DefaultSchema.SERVE, one.path("table").textValue(), one.path("version").textValue(),
          one.path("release").longValue(), moment(one.path("data_time")), one.path("position").textValue(), why != null, why,
          equal.isBoolean() ? equal.booleanValue() : null, moment(one.path("certified_at")),
          one.path("covers").textValue(), moment(one.path("reported_at"))));
    }
    statuses = found;
  }

  private static Instant moment(JsonNode text) {
    return text.isTextual() ? Instant.parse(text.textValue()) : null;
  }

  /** The plan, with rows for its tables. */
  static LogicalPlan answered(SparkSession session, LogicalPlan plan) {
    return plan.transformUpWithSubqueries(new Answering(session));
  }

  private static final class Answering extends Rewriting {
    private final SparkSession session;

    Answering(SparkSession session) {
      this.session = session;
    }

    @Override
    LogicalPlan rewritten(LogicalPlan node) {
      return node instanceof UnresolvedRelation relation
          && isOf(CollectionConverters.asJava(relation.multipartIdentifier())) ? rows(relation) : null;
    }

    private static boolean isOf(List<String> name) {
      int parts = name.size();
      return (parts == 2 || parts == 3 && name.get(0).equalsIgnoreCase(CATALOG))
          && name.get(parts - 2).equalsIgnoreCase(NAME);
    }

    private LogicalPlan rows(UnresolvedRelation relation) {
      if (PastTables.isBound()) {
        throw new Refused(NAME + " AS OF a moment", "it tells of the views of now");
      }
      if (!relation.options().isEmpty()) {
        throw new Refused("WITH (...) of a relation", "its options belong to files, and " + Names.WHY);
      }
      List<String> name = CollectionConverters.asJava(relation.multipartIdentifier());
      String table = name.get(name.size() - 1).toLowerCase(Locale.ROOT);
      Listing listing = new Listing(session);
      return switch (table) {
        case "schemata" -> named(table, SCHEMATA, schemata(listing));
        case "tables" -> named(table, TABLES, tables(listing));
        case "columns" -> named(table, COLUMNS, columns(listing));
        case "table_status" -> named(table, TABLE_STATUS, statuses(Rights.of(session)));
        default -> throw new Refused(table + " of " + NAME, "it has schemata, tables, columns and table_status");
      };
    }
  }

  private static List<Row> statuses(Rights rights) {
    return statuses.stream().filter(one -> rights.mayRead(one.getString(0), one.getString(1)))
        .map(one -> rights.areAll() || one.isNullAt(BECAUSE) ? one : withheld(one)).toList();
  }

  /** An error may tell of values. */
  private static Row withheld(Row status) {
    Object[] values = CollectionConverters.asJava(status.toSeq()).toArray();
    values[BECAUSE] = withheld;
    return RowFactory.create(values);
  }

  private static List<Row> schemata(Listing listing) {
    return listing.schemas(null).stream().map(schema -> RowFactory.create(CATALOG, schema, "")).toList();
  }

  private static List<Row> tables(Listing listing) {
    return listing.views(null, null).stream().map(view -> RowFactory.create(
        CATALOG, view.database(), view.identifier().table(), "VIEW", view.comment().getOrElse(() -> null))).toList();
  }

  private static List<Row> columns(Listing listing) {
    List<Row> rows = new ArrayList<>();
    for (CatalogTable view : listing.views(null, null)) {
      int position = 0;
      for (StructField field : view.schema().fields()) {
        position++;
        DecimalType decimal = field.dataType() instanceof DecimalType found ? found : null;
        rows.add(RowFactory.create(
            CATALOG, view.database(), view.identifier().table(), field.name(), position, field.nullable() ? "YES" : "NO",
            field.dataType().sql(), decimal == null ? null : decimal.precision(),
            decimal == null ? null : decimal.scale(), field.getComment().getOrElse(() -> null)));
      }
    }
    return rows;
  }

  private static LogicalPlan named(String table, StructType columns, List<Row> rows) {
    return new SubqueryAlias(new AliasIdentifier(table, Seqs.of(List.of(NAME))), LocalRows.of(columns, rows));
  }
}
