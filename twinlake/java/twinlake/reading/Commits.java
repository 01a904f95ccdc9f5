package twinlake.reading;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;

/**
 * The commits of one Delta table, and where its data files are: on a disk of this machine read without Hadoop, whose
 * calls cost more than the reading, in a store by Hadoop's client of it.
 */
final class Commits {
  private final String table;

  /** None of a table in a store. */
  private final java.nio.file.Path local;

  Commits(String table) {
    this.table = table;
    this.local = table.startsWith("/") ? java.nio.file.Path.of(table) : null;
  }

  /** The actions of a commit, one a line; null where it is not there. */
  String actions(long version) throws IOException {
    try {
      if (local != null) {
        return Files.readString(local.resolve(name(version)), StandardCharsets.UTF_8);
      }
      Path file = new Path(table, name(version));
      try (InputStream content = store(file).open(file)) {
        return new String(content.readAllBytes(), StandardCharsets.UTF_8);
      }
    } catch (NoSuchFileException | FileNotFoundException none) {
      return null;
    }
  }

  /** The file of a commit. */
  String place(long version) {
    return table + "/" + name(version);
  }

  boolean has(long version) throws IOException {
    Path file = new Path(table, name(version));
    return local != null ? Files.exists(local.resolve(name(version))) : store(file).exists(file);
  }

  /** The data file that an action names, by its path below the table or by its own URI. */
  Path file(URI named) {
    if (local != null) {
      return new Path((named.isAbsolute() ? java.nio.file.Path.of(named) : local.resolve(named.getPath())).toUri());
    }
    return named.isAbsolute() ? new Path(named) : new Path(table, named.getPath());
  }

  private static String name(long version) {
    return String.format("_delta_log/%020d.json", version);
  }

  /** Hadoop keeps one client of a store. */
  private static FileSystem store(Path file) throws IOException {
    return file.getFileSystem(SparkSession.active().sparkContext().hadoopConfiguration());
  }

  /** The topic whose log the table is; null of another table. */
  String topic() {
    String[] parts = table.split("/");
    return parts.length > 1 && parts[parts.length - 2].equals("logs") ? parts[parts.length - 1] : null;
  }

  @Override
  public String toString() {
    return table;
  }
}
