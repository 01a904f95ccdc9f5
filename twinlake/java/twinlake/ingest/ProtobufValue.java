package twinlake.ingest;

import com.google.protobuf.CodedInputStream;
import com.google.protobuf.WireFormat;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.io.Encoder;
import twinlake.ingest.ProtobufBody.Malformed;
import twinlake.ingest.ProtobufBody.Wire;

/** A value of one of Protobuf's types: how it is read off the wire, and written as Avro. */
final class ProtobufValue {
  private static final long MICROS = 1_000_000L;
  private static final int NANOS = 1_000_000_000;

  private final String type;
  private final boolean isWrapped;
  private final ProtobufMessage message;
  private final Map<Integer, Integer> symbols;

  private ProtobufValue(String type, boolean isWrapped, ProtobufMessage message, Map<Integer, Integer> symbols) {
    this.type = type;
    this.isWrapped = isWrapped;
    this.message = message;
    this.symbols = symbols;
  }

  static ProtobufValue of(String type, Schema avro, boolean isWrapped, Map<String, ProtobufMessage> known) {
    ProtobufMessage message = type.equals("message") ? ProtobufMessage.of(avro, known) : null;
    return new ProtobufValue(type, isWrapped, message, type.equals("enum") ? symbols(avro) : null);
  }

  private static Map<Integer, Integer> symbols(Schema avro) {
    Map<?, ?> said = (Map<?, ?>) avro.getObjectProp(ProtobufMessage.SAID);
    List<?> numbers = (List<?>) said.get("numbers");
    Map<Integer, Integer> found = new HashMap<>();
    for (int place = 0; place < numbers.size(); place++) {
      found.put(((Number) numbers.get(place)).intValue(), place);
    }
    return found;
  }

  int wireType() {
    return switch (type) {
      case "double", "fixed64", "sfixed64" -> WireFormat.WIRETYPE_FIXED64;
      case "float", "fixed32", "sfixed32" -> WireFormat.WIRETYPE_FIXED32;
      case "string", "bytes", "message", "timestamp" -> WireFormat.WIRETYPE_LENGTH_DELIMITED;
      default -> WireFormat.WIRETYPE_VARINT;
    };
  }

  boolean isPackable() {
    return !isWrapped && wireType() != WireFormat.WIRETYPE_LENGTH_DELIMITED;
  }

  /** What an entry of a map has where nothing was sent. */
  Object nothing(Wire wire) {
    return message == null ? nothing() : message.nothing(wire);
  }

  /** What is there where nothing was sent, of all but messages. */
  Object nothing() {
    return switch (type) {
      case "double" -> 0.0;
      case "float" -> 0.0f;
      case "uint64", "fixed64" -> BigInteger.ZERO;
      case "string", "bytes" -> new byte[0];
      case "bool" -> Boolean.FALSE;
      case "enum" -> unset();
      default -> 0L;
    };
  }

  /** The symbol of 0; an enum that does not begin with it has none. */
  private Object unset() {
    Integer place = symbols.get(0);
    if (place == null) {
      throw new Malformed();
    }
    return place;
  }

  Object read(int sent, Wire wire) throws IOException {
    if (isWrapped) {
      if (sent != WireFormat.WIRETYPE_LENGTH_DELIMITED) {
        throw new Malformed();
      }
      return ProtobufMessage.within(wire, this::unwrapped);
    }
    if (sent != wireType()) {
      throw new Malformed();
    }
    return plain(wire);
  }

  private Object unwrapped(Wire wire) throws IOException {
    CodedInputStream in = wire.in;
    Object found = null;
    for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
      if (tag != (1 << 3 | wireType()) || found != null) {
        throw new Malformed();
      }
      found = plain(wire);
    }
    return found == null ? nothing() : found;
  }

  private Object plain(Wire wire) throws IOException {
    CodedInputStream in = wire.in;
    return switch (type) {
      case "double" -> in.readDouble();
      case "float" -> in.readFloat();
      case "int64" -> in.readRawVarint64();
      case "sint64" -> CodedInputStream.decodeZigZag64(in.readRawVarint64());
      case "sfixed64" -> in.readRawLittleEndian64();
      case "sfixed32" -> (long) in.readRawLittleEndian32();
      case "fixed32" -> in.readRawLittleEndian32() & 0xFFFF_FFFFL;
      case "uint64" -> unsigned(in.readRawVarint64());
      case "fixed64" -> unsigned(in.readRawLittleEndian64());
      case "int32" -> between(in.readRawVarint64(), Integer.MIN_VALUE, Integer.MAX_VALUE);
      case "uint32" -> between(in.readRawVarint64(), 0, 0xFFFF_FFFFL);
      case "sint32" -> zigzag32(in.readRawVarint64());
      case "bool" -> between(in.readRawVarint64(), 0, 1) == 1;
      case "enum" -> symbol(between(in.readRawVarint64(), Integer.MIN_VALUE, Integer.MAX_VALUE));
      case "string", "bytes" -> in.readByteArray();
      case "timestamp" -> ProtobufMessage.within(wire, ProtobufValue::micros);
      case "message" -> ProtobufMessage.within(wire, message::read);
      default -> throw new IllegalStateException(type);
    };
  }

  private static BigInteger unsigned(long found) {
    BigInteger signed = BigInteger.valueOf(found);
    return found < 0 ? signed.add(BigInteger.ONE.shiftLeft(Long.SIZE)) : signed;
  }

  private static long between(long found, long low, long high) {
    if (found < low || found > high) {
      throw new Malformed();
    }
    return found;
  }

  private static long zigzag32(long found) {
    return CodedInputStream.decodeZigZag32((int) between(found, 0, 0xFFFF_FFFFL));
  }

  private Object symbol(long number) {
    Integer place = symbols.get((int) number);
    if (place == null) {
      throw new Malformed();
    }
    return place;
  }

  /** Of a moment, what microseconds hold of it: what is finer is left out, as of a time before 1970 as well. */
  private static Object micros(Wire wire) throws IOException {
    CodedInputStream in = wire.in;
    Long seconds = null;
    Long nanos = null;
    for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
      if (tag == 8 && seconds == null) {
        seconds = in.readRawVarint64();
      } else if (tag == 16 && nanos == null) {
        nanos = between(in.readRawVarint64(), 0, NANOS - 1);
      } else {
        throw new Malformed();
      }
    }
    long whole = seconds == null ? 0 : seconds;
    if (Math.abs(whole / 2) > Long.MAX_VALUE / MICROS / 2 - 1) {
      return whole < 0 ? Long.MIN_VALUE : Long.MAX_VALUE; // no year that a log holds
    }
    return whole * MICROS + (nanos == null ? 0 : nanos / 1000);
  }

  void write(Object found, Encoder out) throws IOException {
    switch (type) {
      case "double" -> out.writeDouble((Double) found);
      case "float" -> out.writeFloat((Float) found);
      case "uint64", "fixed64" -> out.writeBytes(((BigInteger) found).toByteArray());
      case "string", "bytes" -> out.writeBytes((byte[]) found);
      case "message" -> message.write((Object[]) found, out);
      case "bool" -> out.writeBoolean((Boolean) found);
      case "enum" -> out.writeEnum((Integer) found);
      case "int32", "sint32", "sfixed32" -> out.writeInt(((Long) found).intValue());
      default -> out.writeLong((Long) found);
    }
  }

  /** A map's key, which is text in Avro, a number as its digits. */
  Key asKey(Object found) {
    return new Key(found instanceof byte[] text ? text : String.valueOf(found).getBytes(StandardCharsets.UTF_8));
  }

  /** The entries of a map so far. */
  static Map<Key, Object> entries(Object before) {
    @SuppressWarnings("unchecked")
    Map<Key, Object> found = (Map<Key, Object>) before;
    return found == null ? new LinkedHashMap<>() : found;
  }

  /** Bytes that are equal where they are the same. */
  record Key(byte[] text) {
    @Override
    public boolean equals(Object other) {
      return other instanceof Key key && Arrays.equals(text, key.text);
    }

    @Override
    public int hashCode() {
      return Arrays.hashCode(text);
    }
  }
}
