"""Check: reads a backup back, every byte of it, and says what is not as it was written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from twinlake.backup.archive import Archive, Backup
from twinlake.backup.copying import counting, summed
from twinlake.base.job import Run

MOST = 20
"""So many wrong files are named."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """`wrong` are the first files that are gone or changed, each with why; `differing` how many there are."""

    id: str
    files: int
    bytes: int
    differing: int
    wrong: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        return not self.differing

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "is_whole": self.is_whole}


def check(archive: Archive, backup: Backup, run: Run) -> Checked:
    """Reads every file of it. NotFoundError where it was removed meanwhile."""
    moved, wrong = counting(run, backup.bytes, "reading"), []
    for file in backup.files:
        place = archive.place(file)
        try:
            found = summed(place, moved)
        except FileNotFoundError:
            wrong.append(f"{place} is gone ({file.path})")
            continue
        if found != (file.bytes, file.sha256):
            wrong.append(f"{place} has changed: {found[0]:,} of {file.bytes:,} bytes ({file.path})")
    if wrong:
        archive.refuse_removed(backup)
    return Checked(
        id=backup.id, files=len(backup.files), bytes=backup.bytes, differing=len(wrong),
        wrong=tuple(wrong[:MOST]),
    )  # fmt: skip
