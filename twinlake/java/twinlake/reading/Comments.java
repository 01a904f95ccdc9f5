package twinlake.reading;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * What the catalog says in words of views and their columns, where DESCRIBE and a tool's browser show it. SQL has no
 * statement for the columns of a view that is there already.
 */
public final class Comments {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** One view; of columns that are not named nothing is said. */
  private record Words(String schema, String name, String comment, Map<String, String> columns) {}

  private Comments() {}

  /** `json` is a list of views, each an object with `schema`, `name`, `comment` and `columns` (by name). */
  public static void set(SparkSession session, String json) throws Exception {
    SessionCatalog catalog = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalog();
    for (Words words : JSON.readValue(json, new TypeReference<List<Words>>() {})) {
      CatalogTable view = catalog.getTableMetadata(new TableIdentifier(words.name, Option.apply(words.schema)));
      StructField[] fields = Arrays.stream(view.schema().fields())
          .map(field -> commented(field, words.columns.get(field.name()))).toArray(StructField[]::new);
      catalog.alterTable(
          with(view, new StructType(fields), Option.apply(words.comment.isEmpty() ? null : words.comment)));
    }
  }

  private static StructField commented(StructField field, String comment) {
    return comment == null ? field : field.withComment(comment);
  }

  static CatalogTable with(CatalogTable view, StructType schema, Option<String> comment) {
    return view.copy(
        view.identifier(), view.tableType(), view.storage(), schema, view.provider(), view.partitionColumnNames(),
        view.bucketSpec(), view.owner(), view.createTime(), view.lastAccessTime(), view.createVersion(),
        view.properties(), view.stats(), view.viewText(), comment,
        view.collation(), view.unsupportedFeatures(), view.tracksPartitionsInCatalog(), view.schemaPreservesCase(),
        view.ignoredProperties(), view.viewOriginalText());
  }
}
