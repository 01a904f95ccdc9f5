package twinlake.ingest;

import com.google.protobuf.CodedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.spark.sql.api.java.UDF1;

/**
 * The Avro of a message of Protobuf in Confluent's frame; null for bytes that are not one message of the schema.
 *
 * <p>Stricter than Protobuf's own parsers, which would show other values than were sent: what the schema does not
 * name is refused, as are a field of another wire type, a field that is not repeated and comes twice, two of one
 * oneof, a number that does not fit its type, and a number that its enum does not name.
 */
public final class ProtobufBody implements UDF1<byte[], byte[]> {
  private static final long serialVersionUID = 1L;
  private static final int HEADER = 5;
  private static final int MOST_INDEXES = 100;

  private final String schema;
  private transient ProtobufMessage message;
  private transient int[] at;

  /** By a writer's schema in Avro, as {@code twinlake/topics/protobuf_schema.py} makes it. */
  public ProtobufBody(String schema) {
    this.schema = schema;
    prepare();
  }

  @Override
  public byte[] call(byte[] value) {
    if (value == null || value.length <= HEADER) {
      return null;
    }
    try {
      if (message == null) {
        prepare();
      }
      CodedInputStream in = CodedInputStream.newInstance(value, HEADER, value.length - HEADER);
      if (!Arrays.equals(indexes(in), at)) {
        return null;
      }
      ByteArrayOutputStream made = new ByteArrayOutputStream(value.length);
      BinaryEncoder out = EncoderFactory.get().directBinaryEncoder(made, null);
      message.write(message.read(in), out);
      return made.toByteArray();
    } catch (IOException | Malformed refused) {
      return null;
    }
  }

  /** Of a frame, which message of the file follows; one index of 0 is written as nothing. */
  private static int[] indexes(CodedInputStream in) throws IOException {
    int count = in.readSInt32();
    if (count < 0 || count > MOST_INDEXES) {
      throw new Malformed();
    }
    int[] found = new int[Math.max(count, 1)];
    for (int number = 0; number < count; number++) {
      found[number] = in.readSInt32();
    }
    return found;
  }

  private synchronized void prepare() {
    Schema parsed = new Schema.Parser().parse(schema);
    Map<?, ?> said = (Map<?, ?>) parsed.getObjectProp(ProtobufMessage.SAID);
    int[] place = ((List<?>) said.get("message")).stream().mapToInt(one -> ((Number) one).intValue()).toArray();
    at = place;
    message = ProtobufMessage.of(parsed);
  }

  /** Bytes that are not a message of the schema. */
  static final class Malformed extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Malformed() {
      super(null, null, false, false);
    }
  }
}
