package twinlake.lake;

import java.lang.management.ManagementFactory;
import java.util.Arrays;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;

/**
 * Gives back to the machine what the heap has free, and what {@code malloc} keeps of native memory.
 *
 * <p>By itself Java keeps a heap of the size that the heaviest work needed. The parallel collector shrinks its old
 * generation in a full collection that is requested, where its policy counts for those
 * (UseAdaptiveSizePolicyWithSystemGC) and a ratio limits what stays free. The young one, a third of the heap at most,
 * stays.
 */
public final class UnusedMemory {
  private static final MBeanServer JAVA = ManagementFactory.getPlatformMBeanServer();
  private static final String MOST_FREE = "MaxHeapFreeRatio";
  private static final String TRIM = "systemTrimNativeHeap";

  private UnusedMemory() {}

  /** Stops all threads for the time of one full collection. */
  public static void giveBack() throws JMException {
    String before = mostFree();
    option("setVMOption", MOST_FREE, "20");
    try {
      System.gc();
    } finally {
      option("setVMOption", MOST_FREE, before);
    }
    trimNative();
  }

  /** How much of a generation may stay free after a full collection, in percent. */
  public static String mostFree() throws JMException {
    return (String) ((CompositeData) option("getVMOption", MOST_FREE)).get("value");
  }

  private static Object option(String operation, String... words) throws JMException {
    String[] types = new String[words.length];
    Arrays.fill(types, String.class.getName());
    return JAVA.invoke(new ObjectName("com.sun.management:type=HotSpotDiagnostic"), operation, words, types);
  }

  /** Java before 17.0.9 lacks the command; without glibc it does nothing. */
  private static void trimNative() throws JMException {
    ObjectName commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
    for (var one : JAVA.getMBeanInfo(commands).getOperations()) {
      if (one.getName().equals(TRIM)) {
        JAVA.invoke(commands, TRIM, null, null);
      }
    }
  }
}
