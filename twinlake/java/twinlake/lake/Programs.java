package twinlake.lake;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.security.CodeSource;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.package$;
import org.apache.spark.status.api.v1.ExecutorSummary;
import scala.jdk.javaapi.CollectionConverters;

/** Which programs a JVM of Spark's runs: what the driver has planned, its executors must understand as it does. */
public final class Programs {
  private static final String[] OF_EACH_JAR = {
    "org.apache.spark.sql.delta.DeltaLog", "io.delta.storage.LogStore", "org.apache.spark.sql.avro.AvroDataToCatalyst",
    "org.apache.spark.kafka010.KafkaTokenUtil", "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "org.apache.kafka.clients.consumer.KafkaConsumer",
  };

  private Programs() {}

  /**
   * Spark's version, the names of the jars (which tell theirs), the content of the project's own, and which lake is at
   * the given place, with the user who works on it where users matter.
   */
  public static String here(String lake) throws IOException {
    String jars = Arrays.stream(OF_EACH_JAR).map(Programs::jar).collect(Collectors.joining(", "));
    String own = digest(Files.readAllBytes(place(Programs.class).toPath()));
    return "Spark " + package$.MODULE$.SPARK_VERSION() + ", " + jars + ", twinlake.jar " + own + ", " + at(lake);
  }

  private static String at(String lake) throws IOException {
    Path file = new Path(lake, "lake.json");
    FileSystem files = files(file);
    try (InputStream found = files.open(file)) {
      String of = "lake " + digest(found.readAllBytes());
      // the driver links files that executors have written, which is for their owner alone
      boolean onDisk = files.getUri().getScheme().equals("file");
      return onDisk ? of + " as user " + Files.getAttribute(java.nio.file.Path.of("/proc/self"), "unix:uid") : of;
    } catch (FileNotFoundException | NoSuchFileException away) {
      return "no lake at " + lake;
    }
  }

  /** An empty file of a new name in the lake, for somebody else to look for; its place. */
  static String write(String lake) throws IOException {
    Path file = new Path(lake, ".executor-" + UUID.randomUUID());
    files(file).create(file, false).close();
    return file.toString();
  }

  static boolean sees(String file) throws IOException {
    return files(new Path(file)).exists(new Path(file));
  }

  static void remove(String file) throws IOException {
    files(new Path(file)).delete(new Path(file), false);
  }

  private static FileSystem files(Path place) throws IOException {
    return place.getFileSystem(SparkHadoopUtil.get().newConfiguration(SparkEnv.get().conf()));
  }

  private static String jar(String name) {
    try {
      Class<?> found = Class.forName(name, false, Thread.currentThread().getContextClassLoader());
      return place(found).getName();
    } catch (ClassNotFoundException error) {
      return "no " + name;
    }
  }

  private static String digest(byte[] content) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(content), 0, 6);
    } catch (NoSuchAlgorithmException every) {
      throw new IllegalStateException(every); // every Java has it
    }
  }

  private static File place(Class<?> of) {
    CodeSource source = of.getProtectionDomain().getCodeSource();
    return new File(source.getLocation().getPath());
  }

  /** How many executors there are, and how many cores they have together: {executors, cores}. */
  public static int[] executors(SparkContext context) {
    int[] found = {0, 0};
    for (ExecutorSummary one : CollectionConverters.asJava(context.statusStore().executorList(true))) {
      if (!one.id().equals("driver")) {
        found[0]++;
        found[1] += one.totalCores();
      }
    }
    return found;
  }
}
