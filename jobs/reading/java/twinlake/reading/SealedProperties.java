package twinlake.reading;

import java.util.Properties;

/** The system properties, closed to Hive's sessions: {@code system:name=value} in a connection string sets them. */
final class SealedProperties extends Properties {
  private static final long serialVersionUID = 1L;
  private static final String SESSION = "org.apache.hive.service.cli.session.HiveSessionImpl";

  private SealedProperties(Properties found) {
    putAll(found);
  }

  static void seal() {
    System.setProperties(new SealedProperties(System.getProperties()));
  }

  @Override
  public synchronized Object setProperty(String key, String value) {
    boolean byReader = StackWalker.getInstance().walk(
        frames -> frames.anyMatch(frame -> frame.getClassName().equals(SESSION) && frame.getMethodName().equals("setVariable")));
    if (byReader) {
      throw new Refused("the system property " + key, "it belongs to the server");
    }
    return super.setProperty(key, value);
  }
}
