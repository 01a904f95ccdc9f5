package twinlake.reading;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import javax.security.sasl.AuthenticationException;
import org.apache.hive.service.auth.PasswdAuthenticationProvider;

/**
 * JDBC's user and password, against the file that the system property {@code twinlake.passwords} names.
 *
 * <p>It has a line for each user, {@code user:iterations:salt:hash:role}, salt and hash in hexadecimal; while a password
 * is rotated, {@code iterations:salt:hash} of the one of before stands before the role, too, and either fits. Behind the
 * role may stand {@code :disabled}, of who is not let in, and rights as JSON. The first line may be {@code :mask:key},
 * which is no user's. The hash is PBKDF2 with HMAC-SHA-256 (RFC 8018). The password itself is nowhere in this process.
 * `twinlake/config/users.py` writes and reads the same. Of an unknown user the last line is computed, so that it takes
 * as long. Where any line has another form, nobody gets in by what is left of the file.
 */
public final class Passwords implements PasswdAuthenticationProvider {
  private static final Pattern LINE = Pattern.compile(
      "([^:\\s]+(?::\\d{1,7}:[0-9a-f]{32}:[0-9a-f]{64}){1,2}):(?:analyst|operator|admin)(:disabled)?(?::\\{.*\\})?");
  private static final Pattern MASK = Pattern.compile(":mask:[0-9a-f]{64}");

  /** Of a password: iterations, salt, hash. */
  private static final int OF_ONE = 3;

  /** Read once: a connection string can set system properties while a session opens. */
  private static final Path FILE = Path.of(System.getProperty("twinlake.passwords"));

  @Override
  public void Authenticate(String user, String password) throws AuthenticationException {
    boolean fits = false, isDisabled = false;
    try {
      String[] line = {};
      Set<String> names = new HashSet<>();
      String[] lines = Files.readString(FILE, StandardCharsets.UTF_8).strip().split("\n");
      for (int number = MASK.matcher(lines[0]).matches() ? 1 : 0; number < lines.length; number++) {
        String one = lines[number];
        Matcher found = LINE.matcher(one);
        String[] parts = found.matches() ? found.group(1).split(":") : new String[] {""};
        if (!names.add(parts[0]) || parts.length == 1) {
          throw new IOException("a line of the users is not one: see `twinlake users list`");
        }
        if (line.length == 0 || !line[0].equals(user)) {
          line = parts;
          isDisabled = found.group(2) != null;
        }
      }
      for (int at = 1; at + OF_ONE <= line.length; at += OF_ONE) {
        fits |= matches(line, at, password) && line[0].equals(user) && !isDisabled;
      }
    } catch (IOException | GeneralSecurityException | RuntimeException failed) {
      throw new AuthenticationException("the password could not be checked: " + failed);
    }
    if (!fits) {
      throw new AuthenticationException("user or password is wrong; sql_user and sql_password are in services.json");
    }
    Rights.await(user);
  }

  /** Whether it is the password whose iterations, salt and hash begin there. */
  private static boolean matches(String[] line, int at, String password) throws GeneralSecurityException {
    byte[] expected = HexFormat.of().parseHex(line[at + 2]);
    char[] given = password == null ? new char[0] : password.toCharArray();
    PBEKeySpec spec =
        new PBEKeySpec(given, HexFormat.of().parseHex(line[at + 1]), Integer.parseInt(line[at]), expected.length * 8);
    byte[] found = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(spec).getEncoded();
    return MessageDigest.isEqual(found, expected);
  }
}
