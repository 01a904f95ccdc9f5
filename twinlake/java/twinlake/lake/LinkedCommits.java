package twinlake.lake;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Objects;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's commit files on a local disk, published by a link, which cannot overwrite: Delta's own store looks whether the
 * file is there and then renames, so that a commit of another writer may be lost in between. It lists names first and
 * asks for sizes and times of the files only that were asked for: a table has tens of thousands of commits.
 */
public final class LinkedCommits extends HadoopFileSystemLogStore {
  public LinkedCommits(Configuration settings) {
    super(settings);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration settings) throws IOException {
    java.nio.file.Path commit = file(path).toPath();
    java.nio.file.Path unpublished = commit.resolveSibling("." + path.getName() + "." + UUID.randomUUID() + ".tmp");
    try {
      Files.write(unpublished, (Iterable<String>) () -> actions);
      if (overwrite) {
        Files.move(unpublished, commit, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
      } else {
        Files.createLink(commit, unpublished);
      }
    } finally {
      Files.deleteIfExists(unpublished);
    }
  }

  @Override
  public Iterator<FileStatus> listFrom(Path path, Configuration settings) throws IOException {
    Path folder = path.getParent();
    String[] names = file(folder).list();
    if (names == null) {
      throw new FileNotFoundException("No such file or directory: " + folder);
    }
    FileSystem files = path.getFileSystem(settings);
    return Arrays.stream(names)
        .filter(name -> name.compareTo(path.getName()) >= 0)
        .sorted()
        .map(name -> status(files, new Path(folder, name)))
        .filter(Objects::nonNull)
        .iterator();
  }

  /** A file that is being written can be seen: Delta gives a checkpoint its name when it is whole. */
  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration settings) {
    return true;
  }

  private static FileStatus status(FileSystem files, Path path) {
    try {
      return files.getFileStatus(path);
    } catch (FileNotFoundException cleanedUp) {
      return null;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static File file(Path path) {
    return new File(path.toUri().getPath());
  }
}
