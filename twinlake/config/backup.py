"""What can be set of backups: where they go by themselves, and how many stay there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from twinlake.base.errors import UsageError
from twinlake.base.location import Location, located
from twinlake.config import keys
from twinlake.config.keys import Key, whole

_MUST = 'it must be a folder by its whole path, like "/mnt/backups/shop", or an hdfs:// address'


@keys.formed(type="string", pattern=r"^(/|~|file:///|hdfs://).*[^/]")
def backup_folder(value: Any) -> str:
    """A folder of this machine, or a place in a store; whether it can be written to is seen when it is."""
    text = keys.text(value)
    if "://" in text:
        try:
            return str(located(text))
        except UsageError as error:
            raise ValueError(f"{_MUST}: {error.why}") from error
    try:
        folder = Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{text}: there is no such user, or no home of theirs") from error
    if not folder.is_absolute() or "\0" in text:
        raise ValueError(_MUST)
    return str(folder)


@dataclass(frozen=True, kw_only=True)
class Backups:
    """Those that the lake server takes, and `twinlake backup` without a folder."""

    folder: Annotated[str, Key(
        backup_folder, "where the DAG `backup` puts one every night: a folder for this lake alone, "
        "on another disk", '"/mnt/backups/shop"', "none, and no backups by themselves")] = ""  # fmt: skip
    keep: Annotated[int, Key(
        whole(1, 10_000), "so many of the newest stay there", "14")] = 7  # fmt: skip

    @property
    def place(self) -> Location | None:
        """None where none is set."""
        if not self.folder:
            return None
        return located(self.folder) if "://" in self.folder else Path(self.folder)
