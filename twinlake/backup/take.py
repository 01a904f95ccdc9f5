"""Take: a backup of a lake that goes on being written to; what an earlier one has is not copied again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from twinlake.backup.archive import Archive, Backup, File, telling_of_stores
from twinlake.backup.copying import copied, counting, each
from twinlake.backup.snapshot import Snapshot, snapshot
from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError
from twinlake.base.job import Run
from twinlake.base.location import Location, overlap
from twinlake.base.times import Clock, format_moment, utc_now
from twinlake.base.version import VERSION
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.storage import store


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A backup, and the ids of the older ones that went for it."""

    backup: Backup
    removed: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {**self.backup.to_json(), "removed": list(self.removed)}


def take(settings: Settings, folder: Location, run: Run, clock: Clock = utc_now) -> Backup:
    """A backup of the lake of these settings, in a folder that is empty or has earlier ones of it.

    One that is being taken there is waited for. NotFoundError where there is no lake, UsageError for a folder
    of something else, FullDiskError, and TwinlakeError where a file has gone in the meantime.
    """
    return take_and_keep(settings, folder, None, run, clock).backup


def take_and_keep(
    settings: Settings, folder: Location, keep: int | None, run: Run, clock: Clock = utc_now
) -> Taken:
    """The same, and once it is whole all but the newest `keep` go, if that is a number."""
    with telling_of_stores(folder, settings.lake):
        return _taken_and_kept(settings, folder, keep, run, clock)


def _taken_and_kept(settings: Settings, folder: Location, keep: int | None, run: Run, clock: Clock) -> Taken:
    lake = settings.lake
    if (about := formats.known(lake)) is None:
        raise NotFoundError(f"there is no lake at {lake}", "nothing was started here", "run `twinlake up`")
    formats.refuse_newer(lake, about)  # it may have folders that this version does not know
    refuse_inside(folder, settings)
    archive = Archive(folder)
    with store.telling_of_no_room(folder):
        archive.make_folder(about.id)
    with archive.alone(run), store.telling_of_no_room(folder):
        archive.begin(about.id)
        made = _taken(settings, about, archive, run, clock)
        return Taken(backup=made, removed=_removed(archive, made, keep, run) if keep else ())


def _taken(settings: Settings, about: formats.Known, archive: Archive, run: Run, clock: Clock) -> Backup:
    run.say("looking at every table")
    place = _identity(settings.lake)
    live = release_log.live(settings.lake)
    found = snapshot(settings)
    known = archive.known()
    at = clock()
    files, new = _copied(archive, found, known, run)
    if _identity(settings.lake) != place:
        raise TwinlakeError(
            f"another lake has taken the place of {settings.lake} while it was backed up",
            "`twinlake upgrade --back` does that; a backup would have files of both",
            "no backup was saved; take one again when that has ended",
        )  # fmt: skip
    backup = Backup(
        id=_unused(archive, at), made_at=format_moment(at), twinlake=VERSION, lake_id=about.id,
        lake_format=about.format, release=live.number if live else None, logs=found.logs,
        files=tuple(files), copied=new,
    )  # fmt: skip
    archive.save(backup)
    return backup


def _identity(lake: Location) -> object:
    """Another one for another folder of the same name, where it is one of this machine."""
    if not isinstance(lake, Path):
        return None
    about = lake.stat()
    return about.st_dev, about.st_ino


def _removed(archive: Archive, made: Backup, keep: int, run: Run) -> tuple[str, ...]:
    run.progress(made.bytes, made.bytes, "bytes", "removing what no kept backup needs")
    try:
        return tuple(archive.keep(keep))
    except (OSError, TwinlakeError) as error:
        raise TwinlakeError(
            f"backup {made.id} is whole, and the older ones could not be removed", str(error),
            f"see what is wrong with {archive.folder}; the next backup removes them",
        ) from error  # fmt: skip


def refuse_inside(folder: Location, settings: Settings) -> None:
    """UsageError for a folder in the data directory or the lake, or around them."""
    for place in (settings.home, settings.lake):
        if overlap(_resolved(folder), _resolved(place)):
            why = f"{place} is what is backed up, and would be lost with it"
            raise UsageError(f"backups cannot be in {folder}", why, "name a folder on another disk")


def _resolved(place: Location) -> Location:
    """Without links, by which a folder elsewhere may be in it all the same."""
    return place.resolve() if isinstance(place, Path) else place


def _copied(archive: Archive, found: Snapshot, known: dict[str, File], run: Run) -> tuple[list[File], int]:
    """The files of the backup, all of them in the archive, and how many bytes are new there."""
    fresh = {path: one for path, one in found.data.items() if not _is_there(known.get(path), one[1])}
    small = [
        (File(path=path, bytes=len(content), sha256=sha256(content).hexdigest(), is_data=False), content)
        for path, content in found.small.items()
    ]
    contents = {file.sha256: (file, content) for file, content in small}
    total = sum(size for _, size in fresh.values()) + sum(file.bytes for file, _ in contents.values())
    moved = counting(run, total, "copying")

    def copy(of: tuple[str, tuple[Location, int]]) -> File:
        path, (place, size) = of
        file = _data_file(archive, path, place, size, moved)
        note(file)
        return file

    def write(one: tuple[File, bytes]) -> int:
        """How many bytes are new there."""
        file, content = one
        is_new = not store.exists(archive.place(file))
        if is_new:
            store.make_folder(archive.place(file).parent)
            store.replace_bytes(archive.place(file), content)
        moved(file.bytes)
        return file.bytes if is_new else 0

    with archive.noting() as note:
        copied_now = each(copy, fresh.items(), lambda one: one[1][1], archive.folder)
        written = each(write, contents.values(), lambda one: one[0].bytes, archive.folder)
    files = [*(known[path] for path in found.data if path not in fresh), *copied_now]
    new = sum(size for _, size in fresh.values()) + sum(written)
    return [*files, *(file for file, _ in small)], new


def _is_there(known: File | None, size: int) -> bool:
    return known is not None and known.bytes == size


def _data_file(archive: Archive, path: str, place: Location, size: int, moved: Callable[[int], None]) -> File:
    named = File(path=path, bytes=size, sha256="", is_data=True)
    try:
        bytes_, sum_ = copied(place, archive.place(named), moved)
    except FileNotFoundError as error:
        raise TwinlakeError(
            f"{place} went while it was to be copied",
            "files that no table needs any more are kept for six hours, and this backup has taken longer; or "
            "somebody has removed it",
            "run it again: what is copied is not copied again, so it takes less time. If it is the same file "
            "then, see docs/damage.md",
        ) from error
    if bytes_ != size:
        raise TwinlakeError(
            f"{place} has {bytes_:,} bytes", f"its table says {size:,}", "it is damaged: see docs/damage.md"
        )
    return File(path=path, bytes=size, sha256=sum_, is_data=True)


def _unused(archive: Archive, at: datetime) -> str:
    """The time as an id; with a number where the newest is of this second or, as a clock has jumped, of a
    later one. **why** the newest by its id has to be the last one that was taken: that is kept, and restored.
    """
    id, newest = f"{at:%Y%m%dT%H%M%SZ}", next(iter(archive.ids()), "")
    last, _, number = newest.partition("-")
    return id if last < id else f"{last}-{int(number or 0) + 1}"
