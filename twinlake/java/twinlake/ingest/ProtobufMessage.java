package twinlake.ingest;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.WireFormat;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.avro.Schema;
import org.apache.avro.io.Encoder;
import twinlake.ingest.ProtobufBody.Malformed;
import twinlake.ingest.ProtobufBody.Wire;

/** One message of a schema: its fields by number, and the order in which Avro has them. */
final class ProtobufMessage {
  static final String SAID = "protobuf";

  private final List<ProtobufField> fields = new ArrayList<>();
  private final Map<Integer, ProtobufField> byNumber = new HashMap<>();
  private final Set<Integer> skipped = new HashSet<>();

  static ProtobufMessage of(Schema record) {
    return of(record, new HashMap<>());
  }

  static ProtobufMessage of(Schema record, Map<String, ProtobufMessage> known) {
    ProtobufMessage found = known.get(record.getFullName());
    if (found == null) {
      found = new ProtobufMessage();
      known.put(record.getFullName(), found);
      for (Schema.Field field : record.getFields()) {
        ProtobufField one = new ProtobufField(found.fields.size(), field, known);
        found.fields.add(one);
        found.byNumber.put(one.number, one);
      }
      if (record.getObjectProp(SAID) instanceof Map<?, ?> said && said.get("skipped") instanceof List<?> numbers) {
        for (Object one : numbers) {
          found.skipped.add(((Number) one).intValue());
        }
      }
    }
    return found;
  }

  /** What was sent, in the order of Avro's fields; null where a field was not sent. */
  Object[] read(Wire wire) throws IOException {
    CodedInputStream in = wire.in;
    Object[] values = wire.fields(fields.size());
    Set<String> chosen = null;
    for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
      int number = WireFormat.getTagFieldNumber(tag);
      ProtobufField field = byNumber.get(number);
      if (field == null) {
        if (!skipped.contains(number) || !in.skipField(tag)) {
          throw new Malformed();
        }
        continue;
      }
      if (values[field.place] != null && !field.isRepeated()) {
        throw new Malformed();
      }
      if (field.oneof != null) {
        chosen = chosen == null ? new HashSet<>() : chosen;
        if (!chosen.add(field.oneof)) {
          throw new Malformed();
        }
      }
      values[field.place] = field.read(WireFormat.getTagWireType(tag), wire, values[field.place]);
    }
    return complete(values);
  }

  /** One of which nothing was sent. */
  Object[] nothing(Wire wire) {
    return complete(wire.fields(fields.size()));
  }

  private Object[] complete(Object[] values) {
    for (ProtobufField field : fields) {
      if (field.isRequired && values[field.place] == null) {
        throw new Malformed();
      }
    }
    return values;
  }

  /** What {@link #read} has found, as Avro. */
  void write(Object[] values, Encoder out) throws IOException {
    for (ProtobufField field : fields) {
      field.write(values[field.place], out);
    }
  }

  /** A message within another one, to the end that its length says. */
  static <T> T within(Wire wire, Reading<T> reading) throws IOException {
    CodedInputStream in = wire.in;
    int before = in.pushLimit(in.readRawVarint32());
    T found = reading.read(wire);
    in.checkLastTagWas(0);
    if (in.getBytesUntilLimit() != 0) {
      throw new Malformed();
    }
    in.popLimit(before);
    return found;
  }

  /** Reads what has a length. */
  interface Reading<T> {
    T read(Wire wire) throws IOException;
  }
}
