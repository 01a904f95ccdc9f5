package twinlake.ingest;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.WireFormat;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.io.Encoder;
import twinlake.ingest.ProtobufBody.Malformed;
import twinlake.ingest.ProtobufBody.Wire;

/** A field of a message: how it is read, and written as Avro. */
final class ProtobufField {
  final int place;
  final int number;
  final String oneof;
  final boolean isRequired;

  private final boolean isNullable;
  private final boolean isList;
  private final ProtobufValue value;
  private final ProtobufValue key;

  ProtobufField(int place, Schema.Field field, Map<String, ProtobufMessage> known) {
    Map<?, ?> said = (Map<?, ?>) field.getObjectProp(ProtobufMessage.SAID);
    Schema schema = field.schema();
    this.place = place;
    number = ((Number) said.get("number")).intValue();
    oneof = (String) said.get("oneof");
    isRequired = Boolean.TRUE.equals(said.get("required"));
    isNullable = schema.isUnion();
    Schema type = isNullable ? schema.getTypes().get(1) : schema;
    isList = type.getType() == Schema.Type.ARRAY;
    boolean isMap = type.getType() == Schema.Type.MAP;
    Schema inner = isList ? type.getElementType() : isMap ? type.getValueType() : type;
    key = isMap ? ProtobufValue.of((String) said.get("key"), Schema.create(Schema.Type.STRING), false, known) : null;
    value = ProtobufValue.of((String) said.get("type"), inner, Boolean.TRUE.equals(said.get("wrapped")), known);
  }

  boolean isRepeated() {
    return isList || key != null;
  }

  /** One more value as the wire has it; {@code before} is what came before of the same field. */
  Object read(int wireType, Wire wire, Object before) throws IOException {
    if (key != null) {
      return withEntry(wireType, wire, before);
    }
    if (!isList) {
      return value.read(wireType, wire);
    }
    @SuppressWarnings("unchecked")
    List<Object> found = before == null ? new ArrayList<>() : (List<Object>) before;
    if (wireType == WireFormat.WIRETYPE_LENGTH_DELIMITED && value.isPackable()) {
      CodedInputStream in = wire.in;
      int outer = in.pushLimit(in.readRawVarint32());
      while (in.getBytesUntilLimit() > 0) {
        found.add(value.read(value.wireType(), wire));
      }
      in.popLimit(outer);
    } else {
      found.add(value.read(wireType, wire));
    }
    return found;
  }

  private Object withEntry(int wireType, Wire wire, Object before) throws IOException {
    if (wireType != WireFormat.WIRETYPE_LENGTH_DELIMITED) {
      throw new Malformed();
    }
    Map<ProtobufValue.Key, Object> found = ProtobufValue.entries(before);
    Object[] entry = ProtobufMessage.within(wire, this::entry);
    Object sent = entry[1] == null ? value.nothing(wire) : entry[1];
    ProtobufValue.Key name = key.asKey(entry[0] == null ? key.nothing(wire) : entry[0]);
    if (found.put(name, sent) != null) {
      throw new Malformed();
    }
    return found;
  }

  private Object[] entry(Wire wire) throws IOException {
    CodedInputStream in = wire.in;
    Object[] found = new Object[2];
    for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
      int at = WireFormat.getTagFieldNumber(tag) - 1;
      if (at < 0 || at > 1 || found[at] != null) {
        throw new Malformed();
      }
      found[at] = (at == 0 ? key : value).read(WireFormat.getTagWireType(tag), wire);
    }
    return found;
  }

  /** What {@link #read} has found as Avro; of nothing what the field is then. */
  void write(Object found, Encoder out) throws IOException {
    if (isNullable) {
      out.writeIndex(found == null ? 0 : 1);
      if (found == null) {
        out.writeNull();
        return;
      }
    }
    if (key != null) {
      writeMap(ProtobufValue.entries(found), out);
    } else if (isList) {
      writeList(found == null ? List.of() : (List<?>) found, out);
    } else {
      value.write(found == null ? value.nothing() : found, out);
    }
  }

  private void writeList(List<?> found, Encoder out) throws IOException {
    out.writeArrayStart();
    out.setItemCount(found.size());
    for (Object one : found) {
      out.startItem();
      value.write(one, out);
    }
    out.writeArrayEnd();
  }

  private void writeMap(Map<ProtobufValue.Key, Object> found, Encoder out) throws IOException {
    out.writeMapStart();
    out.setItemCount(found.size());
    for (Map.Entry<ProtobufValue.Key, Object> one : found.entrySet()) {
      out.startItem();
      out.writeBytes(one.getKey().text()); // as a string is written
      value.write(one.getValue(), out);
    }
    out.writeMapEnd();
  }
}
