package twinlake.reading;

import java.util.Properties;
import org.apache.hive.service.cli.session.HiveSessionImpl;

/** The system properties, closed to Hive's sessions: {@code system:name=value} in a connection string sets them. */
final class SealedProperties extends Properties {
  private static final long serialVersionUID = 1L;
  private static final String SESSION = HiveSessionImpl.class.getName();
  private static final String SETS = Guards.method(HiveSessionImpl.class, "setVariable");

  private SealedProperties(Properties found) {
    putAll(found);
  }

  static void seal() {
    System.setProperties(new SealedProperties(System.getProperties()));
  }

  @Override
  public synchronized Object setProperty(String key, String value) {
    boolean byReader = StackWalker.getInstance().walk(
        frames -> frames.anyMatch(frame -> frame.getClassName().equals(SESSION) && frame.getMethodName().equals(SETS)));
    if (byReader) {
      throw new Refused("the system property " + key, "it belongs to the server");
    }
    return super.setProperty(key, value);
  }
}
