package twinlake.reading;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import twinlake.lake.Seqs;

/**
 * What a reader's tool is shown of the catalog: `serve` and the releases' schemas, as one release has them. Schemas
 * that only views read (watermarks, points in time) and Spark's own `default`, which is empty, are not in it, nor is
 * what the reader has no right to ({@link Rights}).
 */
public final class Listing {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final SessionState state;
  private final SessionCatalog catalog;
  private final Rights rights;

  Listing(SparkSession session) {
    rights = Rights.of(session);
    state = ((org.apache.spark.sql.classic.SparkSession) session).sessionState();
    catalog = state.catalog();
  }

  static boolean isListed(String schema) {
    return schema.equals("serve") || schema.matches("release_\\d+");
  }

  /** Whether the schema has views of tables, as they are or were, and not what only they read. */
  static boolean isOfTables(String schema) {
    String low = schema.toLowerCase(Locale.ROOT);
    return isListed(low) || low.startsWith(Rights.PAST);
  }

  /** As JSON, what an editor completes: `schemas`, and of `serve` the `tables` with name and type of each column. */
  public static String names(SparkSession session) throws JsonProcessingException {
    Listing listing = new Listing(session);
    List<Map<String, Object>> tables = listing.views("serve", null).stream().map(Listing::table).toList();
    return JSON.writeValueAsString(Map.of("schemas", listing.schemas(null), "tables", tables));
  }

  /** As JSON, the schemas that fit this pattern of SQL's; all of them for null. */
  public static String schemas(SparkSession session, String pattern) throws JsonProcessingException {
    return JSON.writeValueAsString(new Listing(session).schemas(pattern));
  }

  /**
   * As JSON, the views that fit: `schema`, `name`, its `columns` ({@link ArrowColumns}, in Base64), and of each column Spark's
   * name of its type and what the contract says of it, or "".
   */
  public static String tables(SparkSession session, String schemaPattern, String tablePattern)
      throws JsonProcessingException {
    List<Map<String, Object>> found = new Listing(session).views(schemaPattern, tablePattern).stream()
        .map(view -> Map.<String, Object>of("schema", view.database(), "name", view.identifier().table(),
            "columns", ArrowColumns.of(session, view.schema()), // bytes are Base64 in JSON
            "types", Arrays.stream(view.schema().fields()).map(one -> one.dataType().sql()).toList(),
            "comments", Arrays.stream(view.schema().fields()).map(one -> one.getComment().getOrElse(() -> "")).toList()))
        .toList();
    return JSON.writeValueAsString(found);
  }

  private static Map<String, Object> table(CatalogTable view) {
    List<Map<String, String>> columns = Arrays.stream(view.schema().fields())
        .map(one -> Map.of("name", one.name(), "type", one.dataType().simpleString())).toList();
    return Map.of("name", view.identifier().table(), "columns", columns);
  }

  List<String> schemas(String pattern) {
    Pattern wanted = Pattern.of(pattern);
    return CollectionConverters.asJava(catalog.listDatabases()).stream()
        .filter(schema -> isListed(schema) && wanted.fits(schema) && (rights.areAll() || hasAny(schema))).sorted().toList();
  }

  /** Ordered by schema and name. */
  List<CatalogTable> views(String schemaPattern, String tablePattern) {
    Pattern wanted = Pattern.of(tablePattern);
    return OneRelease.seen(() -> {
      List<CatalogTable> found = new ArrayList<>();
      for (String schema : schemas(schemaPattern)) {
        found.addAll(viewsOf(schema, wanted));
      }
      return found;
    });
  }

  /** Of the views of one schema. */
  List<String> names(String schema) {
    return OneRelease.seen(() -> viewsOf(schema, Pattern.of(null))).stream().map(view -> view.identifier().table()).toList();
  }

  private boolean hasAny(String schema) {
    return CollectionConverters.asJava(catalog.listTables(schema, "*", false)).stream()
        .anyMatch(name -> rights.mayRead(schema, name.table()));
  }

  private List<CatalogTable> viewsOf(String schema, Pattern wanted) {
    try {
      List<TableIdentifier> names = CollectionConverters.asJava(catalog.listTables(schema, "*", false)).stream()
          .filter(name -> wanted.fits(name.table()) && rights.mayRead(schema, name.table()))
          .sorted(Comparator.comparing(TableIdentifier::table)).toList();
      List<CatalogTable> views = CollectionConverters.asJava(
          catalog.getTablesByName(Seqs.of(names)));
      return rights.areAll() ? views : views.stream().map(this::shown).toList();
    } catch (Exception failed) {
      if (failed instanceof NoSuchNamespaceException) {
        return List.of(); // its release was retired since the schemas were listed
      }
      throw failed instanceof RuntimeException unchecked
          ? unchecked : new IllegalStateException(failed.getMessage(), failed);
    }
  }

  private CatalogTable shown(CatalogTable view) {
    return Comments.with(view, rights.shown(view.identifier().table(), view.schema()), view.comment());
  }

  /** Spark's functions that a statement may call. */
  List<ExpressionInfo> functions(String pattern) {
    Pattern wanted = Pattern.of(pattern);
    return CollectionConverters.asJava(state.functionRegistry().listFunction()).stream()
        .filter(name -> wanted.fits(name.funcName()))
        .map(name -> state.functionRegistry().lookupFunction(name)).filter(Option::isDefined).map(Option::get)
        .sorted(Comparator.comparing(ExpressionInfo::getName)).toList();
  }
}
