package twinlake.reading;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.HexFormat;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;
import twinlake.lake.Seqs;

/** What is seen instead of a value. NULL stays NULL; equal values have equal hashes, so they can be counted and joined. */
public final class Masks {
  private static final String HMAC = "HmacSHA256", FILLED = "****";
  private static final int LAST = 4;
  /** Of a shorter value nothing is shown: four signs would be most of it. */
  private static final int SHORT = 8;

  private static volatile byte[] key = {};

  private Masks() {}

  /** In hexadecimal, what hashes are keyed with: who does not know it cannot try values. */
  static void key(String hex) {
    key = HexFormat.of().parseHex(hex);
  }

  /** What stands for the value; times are shown in UTC before, so that the session's zone changes nothing. */
  static Expression of(Rights.Mask mask, Expression value, DataType type) {
    if (mask == Rights.Mask.NULL) {
      return new Literal(null, type);
    }
    Expression text = new Cast(value, DataTypes.StringType, Option.apply("UTC"), EvalMode.ANSI());
    return invoked(mask == Rights.Mask.HASH ? "hash" : "lastFour", DataTypes.StringType, List.of(text), true);
  }

  /** Is true, which the optimizer does not know: what a reader asks is computed of no row that is taken out below. */
  static Expression barrier() {
    return invoked("barred", DataTypes.BooleanType, List.of(), false);
  }

  /** HMAC with SHA-256 (RFC 2104), in hexadecimal. */
  public static UTF8String hash(UTF8String value) {
    byte[] secret = key;
    if (secret.length == 0) {
      throw new IllegalStateException("the users have no key for masks; `twinlake users rights` makes it");
    }
    try {
      Mac mac = Mac.getInstance(HMAC);
      mac.init(new SecretKeySpec(secret, HMAC));
      byte[] found = mac.doFinal(value.getBytes());
      return UTF8String.fromBytes(HexFormat.of().formatHex(found).getBytes(StandardCharsets.US_ASCII));
    } catch (GeneralSecurityException never) {
      throw new IllegalStateException(never);
    }
  }

  public static UTF8String lastFour(UTF8String value) {
    int length = value.numChars();
    return UTF8String.concat(
        UTF8String.fromString(FILLED), length < SHORT ? UTF8String.EMPTY_UTF8 : value.substring(length - LAST, length));
  }

  public static boolean barred() {
    return true;
  }

  private static Expression invoked(String name, DataType type, List<Expression> of, boolean isDeterministic) {
    Seq<Expression> arguments = Seqs.of(of);
    return new StaticInvoke(
        Masks.class, type, name, arguments, List$.MODULE$.empty(), true, true, isDeterministic, Option.empty());
  }
}
