package twinlake.reading;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import javax.security.sasl.AuthenticationException;
import org.apache.hive.service.auth.PasswdAuthenticationProvider;

/**
 * JDBC's user and password, against the file that the system property {@code twinlake.passwords} names.
 *
 * <p>It has a line for each user, {@code user:iterations:salt:hash:role}, salt and hash in hexadecimal, and two while a
 * password is rotated; the hash is PBKDF2 with HMAC-SHA-256 (RFC 8018). The password itself is nowhere in this process. `twinlake/config/users.py` writes
 * and reads the same. Of an unknown user the last line is computed, so that it takes as long.
 */
public final class Passwords implements PasswdAuthenticationProvider {
  /** Read once: a connection string can set system properties while a session opens. */
  private static final Path FILE = Path.of(System.getProperty("twinlake.passwords"));

  @Override
  public void Authenticate(String user, String password) throws AuthenticationException {
    boolean fits = false;
    try {
      String[] lines = Files.readString(FILE, StandardCharsets.UTF_8).strip().split("\n");
      boolean isKnown = false;
      for (int i = 0; i < lines.length; i++) {
        String[] line = lines[i].split(":");
        boolean isTheirs = line[0].equals(user);
        boolean standsIn = i == lines.length - 1 && !isKnown;
        if (isTheirs || standsIn) {
          fits |= matches(line, password) && isTheirs;
        }
        isKnown |= isTheirs;
      }
    } catch (IOException | GeneralSecurityException | RuntimeException failed) {
      throw new AuthenticationException("the password could not be checked: " + failed);
    }
    if (!fits) {
      throw new AuthenticationException("user or password is wrong; sql_user and sql_password are in services.json");
    }
  }

  private static boolean matches(String[] line, String password) throws GeneralSecurityException {
    byte[] expected = HexFormat.of().parseHex(line[3]);
    char[] given = password == null ? new char[0] : password.toCharArray();
    PBEKeySpec spec =
        new PBEKeySpec(given, HexFormat.of().parseHex(line[2]), Integer.parseInt(line[1]), expected.length * 8);
    byte[] found = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(spec).getEncoded();
    return MessageDigest.isEqual(found, expected);
  }
}
