package twinlake.reading;

import java.sql.DatabaseMetaData;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The rows of DatabaseMetaData.getColumns: a view's columns in the types of java.sql. */
final class Columns {
  /** A type's number in java.sql, and its digits and their base where it is a number. */
  private record Shape(int type, Integer size, Integer digits, Integer radix) {}

  private static final Map<DataType, Shape> SHAPES = Map.ofEntries(
      Map.entry(DataTypes.BooleanType, new Shape(Types.BOOLEAN, 1, null, null)),
      Map.entry(DataTypes.ByteType, new Shape(Types.TINYINT, 3, 0, 10)),
      Map.entry(DataTypes.ShortType, new Shape(Types.SMALLINT, 5, 0, 10)),
      Map.entry(DataTypes.IntegerType, new Shape(Types.INTEGER, 10, 0, 10)),
      Map.entry(DataTypes.LongType, new Shape(Types.BIGINT, 19, 0, 10)),
      Map.entry(DataTypes.FloatType, new Shape(Types.FLOAT, 7, 7, 10)),
      Map.entry(DataTypes.DoubleType, new Shape(Types.DOUBLE, 15, 15, 10)),
      Map.entry(DataTypes.BinaryType, new Shape(Types.BINARY, null, null, null)),
      Map.entry(DataTypes.DateType, new Shape(Types.DATE, 10, null, null)),
      Map.entry(DataTypes.TimestampType, new Shape(Types.TIMESTAMP, 26, 6, null)),
      Map.entry(DataTypes.TimestampNTZType, new Shape(Types.TIMESTAMP, 26, 6, null)),
      Map.entry(DataTypes.NullType, new Shape(Types.NULL, null, null, null)));

  private Columns() {}

  static List<Object[]> of(CatalogTable view, String pattern) {
    Pattern wanted = Pattern.of(pattern);
    List<Object[]> rows = new ArrayList<>();
    int position = 0;
    for (StructField field : view.schema().fields()) {
      position++; // counts from 1, also those that are not asked for
      if (wanted.fits(field.name())) {
        rows.add(row(view, field, position));
      }
    }
    return rows;
  }

  private static Object[] row(CatalogTable view, StructField field, int position) {
    Shape shape = shape(field.dataType());
    return new Object[] {
        null, view.database(), view.identifier().table(), field.name(), shape.type, field.dataType().sql(),
        shape.size, null, shape.digits, shape.radix,
        field.nullable() ? DatabaseMetaData.columnNullable : DatabaseMetaData.columnNoNulls,
        field.getComment().getOrElse(() -> ""), null, null, null, null, position, field.nullable() ? "YES" : "NO",
        null, null, null, null, "NO"};
  }

  private static Shape shape(DataType type) {
    if (type instanceof DecimalType decimal) {
      return new Shape(Types.DECIMAL, decimal.precision(), decimal.scale(), 10);
    }
    if (type instanceof StringType) {
      return new Shape(Types.VARCHAR, null, null, null);
    }
    if (type instanceof ArrayType) {
      return new Shape(Types.ARRAY, null, null, null);
    }
    if (type instanceof StructType) {
      return new Shape(Types.STRUCT, null, null, null);
    }
    if (type instanceof MapType) {
      return new Shape(Types.JAVA_OBJECT, null, null, null);
    }
    return SHAPES.getOrDefault(type, new Shape(Types.OTHER, null, null, null));
  }
}
