package twinlake.ingest;

import com.google.protobuf.CodedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
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
  private static final int MOST_FIELDS = 4_000_000;

  private final String schema;
  private final transient ProtobufMessage message;
  private final transient int[] place;

  /** By a writer's schema in Avro, as {@code twinlake/topics/protobuf_schema.py} makes it. */
  public ProtobufBody(String schema) {
    this.schema = schema;
    Schema parsed = new Schema.Parser().parse(schema);
    Map<?, ?> said = (Map<?, ?>) parsed.getObjectProp(ProtobufMessage.SAID);
    place = ((List<?>) said.get("message")).stream().mapToInt(one -> ((Number) one).intValue()).toArray();
    message = ProtobufMessage.of(parsed);
  }

  private Object readResolve() {
    return new ProtobufBody(schema);
  }

  @Override
  public byte[] call(byte[] value) {
    if (value == null || value.length <= HEADER) {
      return null;
    }
    try {
      CodedInputStream in = CodedInputStream.newInstance(value, HEADER, value.length - HEADER);
      if (!isPlace(in)) {
        return null;
      }
      ByteArrayOutputStream made = new ByteArrayOutputStream(value.length);
      BinaryEncoder out = EncoderFactory.get().directBinaryEncoder(made, null);
      message.write(message.read(new Wire(in)), out);
      return made.toByteArray();
    } catch (IOException | Malformed refused) {
      return null;
    }
  }

  /** Whether the frame names our message of the file; one index of 0 is written as nothing. */
  private boolean isPlace(CodedInputStream in) throws IOException {
    int count = in.readSInt32();
    if (count == 0) {
      return place.length == 1 && place[0] == 0;
    }
    boolean isOurs = count == place.length;
    for (int number = 0; isOurs && number < count; number++) {
      isOurs = in.readSInt32() == place[number];
    }
    return isOurs;
  }

  /** The bytes of one record, and how many more fields its messages may have: one of two bytes has all of its own. */
  static final class Wire {
    final CodedInputStream in;
    private int left = MOST_FIELDS;

    Wire(CodedInputStream in) {
      this.in = in;
    }

    Object[] fields(int count) {
      left -= count;
      if (left < 0) {
        throw new Malformed();
      }
      return new Object[count];
    }
  }

  /** Bytes that are not a message of the schema. */
  static final class Malformed extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Malformed() {
      super(null, null, false, false);
    }
  }
}
