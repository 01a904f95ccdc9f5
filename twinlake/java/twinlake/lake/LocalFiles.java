package twinlake.lake;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local file system without other programs: Hadoop's own starts chmod, ls and readlink where its native library is
 * missing, about nine times for every micro-batch. It writes no checksum files beside the files either.
 */
public final class LocalFiles extends RawLocalFileSystem {
  /** The same for Hadoop's other interface to file systems, which a stream's checkpoint is written through. */
  public static final class Context extends DelegateToFileSystem {
    public Context(URI uri, Configuration settings) throws IOException, URISyntaxException {
      super(uri, new LocalFiles(), settings, "file", false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    PosixFileAttributes found;
    try {
      found = Files.readAttributes(pathToFile(path).toPath(), PosixFileAttributes.class);
    } catch (NoSuchFileException gone) {
      throw new FileNotFoundException("File " + path + " does not exist");
    }
    return new FileStatus(
        found.size(), found.isDirectory(), 1, getDefaultBlockSize(path), found.lastModifiedTime().toMillis(),
        found.lastAccessTime().toMillis(), FsPermission.valueOf("-" + PosixFilePermissions.toString(found.permissions())),
        found.owner().getName(), found.group().getName(), makeQualified(path));
  }

  @Override
  public FileStatus getFileLinkStatus(Path path) throws IOException {
    return getFileStatus(path);
  }

  @Override
  public void setPermission(Path path, FsPermission permission) throws IOException {
    String wanted = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL + permission.getOtherAction().SYMBOL;
    Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(wanted));
  }
}
