"""A lake on a disk of this machine: a link publishes a file, because it cannot overwrite one."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from twinlake.base.errors import FullDiskError
from twinlake.base.files import PRIVATE, full_disk, replace_file
from twinlake.base.location import Stat


class LocalStore:
    """Implements `store.Store`."""

    def names(self, folder: Path) -> list[str]:
        try:
            return os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def tree(self, folder: Path) -> dict[str, Stat]:
        found = {}
        for at, _, names in os.walk(folder):
            for file in (Path(at, name) for name in names):
                with suppress(FileNotFoundError):  # gone in this moment
                    found[str(file.relative_to(folder))] = self.stat(file)
        return found

    def exists(self, place: Path) -> bool:
        return place.exists()

    def stat(self, file: Path) -> Stat:
        found = file.stat()
        return Stat(found.st_size, found.st_mtime_ns)

    def read(self, file: Path) -> bytes:
        return file.read_bytes()

    def put_if_absent(self, file: Path, content: bytes) -> bool:
        unpublished = file.with_name(f".{file.name}.{uuid4()}.tmp")
        try:
            unpublished.write_bytes(content)
            os.link(unpublished, file)
        except FileExistsError:
            return False
        finally:
            unpublished.unlink(missing_ok=True)
        return True

    def replace(self, file: Path, content: bytes) -> None:
        replace_file(file, content)

    def copy(self, file: Path, to: Path) -> None:
        """A link, or a copy from another disk that is mounted in the lake."""
        try:
            os.link(file, to)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.copyfile(file, to)
        os.utime(to)  # a link is as old as its file

    def rename(self, file: Path, name: str) -> None:
        file.rename(file.with_name(name))

    def delete(self, file: Path) -> None:
        file.unlink(missing_ok=True)

    def delete_tree(self, folder: Path) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)

    def make_folder(self, folder: Path) -> None:
        """Whatever the umask says, the SQL server's user may read what is made."""
        if folder.exists():
            return
        made = [one for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for one in made:
            one.chmod(0o755)

    def make_private(self, folder: Path) -> None:
        folder.chmod(PRIVATE)

    def reader(self, file: Path) -> str:
        return str(file)

    @contextmanager
    def writer(self, file: Path) -> Iterator[str]:
        yield str(file)

    def no_room(self, place: Path, error: BaseException, *disks: Path) -> FullDiskError | None:
        if isinstance(error, FullDiskError) and full_disk(place, *disks) is None:
            return None  # it names another disk, as that of backups
        return full_disk(place, *disks, error=error)
