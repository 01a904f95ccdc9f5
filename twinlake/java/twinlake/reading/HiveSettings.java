package twinlake.reading;

import java.util.Arrays;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.hive.conf.HiveConf;

/**
 * Hive's own settings, closed to connection strings: a session takes them before any statement could be refused, and
 * deletes the folder that one of them names when it is closed.
 */
final class HiveSettings {
  /** What Hive's driver sends with every connection. */
  static final String DRIVERS_OWN = "hive.server2.thrift.resultset.default.fetch.size";

  private HiveSettings() {}

  /** Hive reads this property for each configuration that it makes; it goes by the beginning of a name. */
  static void restrict() {
    Stream<String> hives = Arrays.stream(HiveConf.ConfVars.values()).map(one -> one.varname);
    Stream<String> others = Stream.of("javax.", "datanucleus.", "hadoop.", "fs.", "dfs.", "ipc.", "mapred", "yarn.");
    System.setProperty(
        HiveConf.ConfVars.HIVE_CONF_RESTRICTED_LIST.varname,
        Stream.concat(hives, others).filter(name -> !DRIVERS_OWN.startsWith(name)).collect(Collectors.joining(",")));
  }
}
