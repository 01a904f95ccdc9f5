package twinlake.reading;

import java.io.ByteArrayOutputStream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter;
import org.apache.spark.sql.types.StructType;

/** Columns as Arrow has them, for who wants to know them before rows are computed: a stream without rows. */
public final class ArrowColumns {
  private ArrowColumns() {}

  public static byte[] of(Dataset<Row> relation) {
    var planned = (org.apache.spark.sql.classic.Dataset<Row>) relation;
    return of(planned.sparkSession(), planned.schema());
  }

  /** As {@link twinlake.lake.Spool} writes them: of an answer every value may be NULL. */
  static byte[] of(SparkSession session, StructType columns) {
    String zone = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().conf().sessionLocalTimeZone();
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    new ArrowBatchStreamWriter(columns.asNullable(), out, zone, false, false).end();
    return out.toByteArray();
  }
}
