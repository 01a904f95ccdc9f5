package twinlake.reading;

import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import twinlake.lake.Seqs;

/** A relation of rows that are known already. */
final class LocalRows {
  private LocalRows() {}

  static LocalRelation of(StructType columns, List<Row> rows) {
    List<Attribute> attributes = List.copyOf(CollectionConverters.asJava(DataTypeUtils.toAttributes(columns)));
    return of(Seqs.of(attributes), rows);
  }

  static LocalRelation of(Seq<Attribute> columns, List<Row> rows) {
    return LocalRelation.fromExternalRows(columns, Seqs.of(rows));
  }
}
