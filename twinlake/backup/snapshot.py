"""Snapshot: of which files one consistent state of a lake consists, found while everything goes on.

Nothing is held up: it is the order in which the tables are looked at that makes the state one that can have
been. What refers to something is looked at before it: releases and certificates before the versions that they
name, versions before the logs that they were computed from, for a table ahead of its log is refused, and one
behind it catches up. Each Delta table is itself at one of its commits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from twinlake.base.location import Location
from twinlake.config.settings import Settings
from twinlake.lake.delta import delta
from twinlake.lake.delta.table_state import TableState, whole_checkpoints
from twinlake.lake.log import log_start
from twinlake.lake.storage import store

LAKE = "lake"
"""What the lake is called in a backup, wherever it is."""
FIRST = ("releases", "certificates", "topic_certificates", "audit", "runs")
"""Tables that name versions and batches."""
REFERRING = ("plans", "changelogs", "publications", "webhooks", "paused")
"""Folders of small files that do so, too, or name tables and topics."""
LAST = ("contracts", "topics")
"""Folders of small files that logs refer to."""
OF_HOME = ("twinlake.toml", "access/users")
"""Settings, which name files of secrets and hold none, and hashes of passwords."""
_TRIES = 5


@dataclass
class Snapshot:
    """`small` are files by their paths in the backup, with their content; `data` where each data file is."""

    small: dict[str, bytes] = field(default_factory=dict)
    data: dict[str, tuple[Location, int]] = field(default_factory=dict)
    logs: dict[str, int] = field(default_factory=dict)
    """By topic the newest batch."""


def snapshot(settings: Settings) -> Snapshot:
    """Of the lake as it is, whoever writes to it; FileNotFoundError where there is none."""
    made, lake = Snapshot(), settings.lake
    made.small[f"{LAKE}/lake.json"] = store.read(lake / "lake.json")
    for name in FIRST:
        _add_table(made, lake, name)
    for name in REFERRING:
        _add_folder(made, lake, name)
    for table, version in _versions(lake):
        _add_version(made, lake, table, version)
    for topic in sorted(store.names(lake / "logs")):
        if (state := _add_table(made, lake, f"logs/{topic}")) is not None:
            made.logs[topic] = state.transaction(f"log:{state.id}")
            _add_kept(made, lake, f"logs/{topic}", state.transaction(log_start.app_id(state.id)))
    for name in LAST:
        _add_folder(made, lake, name)
    for name in OF_HOME:
        if (file := settings.home / name).exists():
            made.small[name] = file.read_bytes()
    return made


def _versions(lake: Location) -> Iterator[tuple[str, str]]:
    """(table, version) of every definition that is stored."""
    for table in sorted(store.names(lake / "tables")):
        for name in sorted(store.names(lake / "tables" / table)):
            if name.endswith(".json") and not name.startswith("."):
                yield table, name.removesuffix(".json")


def _add_version(made: Snapshot, lake: Location, table: str, version: str) -> None:
    """Nothing of one that is retired in this moment."""
    path = f"tables/{table}/{version}"
    try:
        definition = store.read(lake / "tables" / table / f"{version}.json")
    except FileNotFoundError:
        return
    found = Snapshot(small={f"{LAKE}/{path}.json": definition})
    _add_table(found, lake, path)
    if store.exists(lake / "tables" / table / f"{version}.json"):
        made.small |= found.small
        made.data |= found.data


def _add_folder(made: Snapshot, lake: Location, name: str) -> None:
    """Files that are replaced as a whole."""
    for path in sorted(store.tree(lake / name)):
        if not any(part.startswith(".") for part in path.split("/")):
            try:
                made.small[f"{LAKE}/{name}/{path}"] = store.read(below(lake / name, path))
            except FileNotFoundError:  # it is no longer kept
                continue


def _add_table(made: Snapshot, lake: Location, path: str) -> TableState | None:
    """A Delta table at its newest commit; None where there is none."""
    place = below(lake, path)
    for attempt in range(_TRIES):
        version = delta.newest_version(place)
        if version < 0:
            return None
        try:
            log = _log(place, version)
            state = TableState(place, appends=False, at=version)
        except FileNotFoundError:  # cleaned up behind a newer checkpoint, or retired
            if attempt + 1 < _TRIES:
                continue
            raise
        made.small |= {f"{LAKE}/{path}/{delta.LOG_FOLDER}/{name}": text for name, text in log.items()}
        for name, file in state.files.items():
            found = unquote(name)
            made.data[f"{LAKE}/{path}/{found}"] = (below(place, found), file.bytes)
        return state
    return None


def _add_kept(made: Snapshot, lake: Location, path: str, number: int) -> None:
    """What retention has kept beside a log, where it has deleted anything of it."""
    if not number:
        return
    place, into = log_start.folder(below(lake, path), number), f"{LAKE}/{path}/{log_start.FOLDER}/{number}"
    made.small[f"{into}/{log_start.FILE}"] = store.read(place / log_start.FILE)
    for name, file in store.tree(place).items():
        if name.endswith(".parquet"):
            made.data[f"{into}/{name}"] = (below(place, name), file.bytes)


def _log(place: Location, version: int) -> dict[str, bytes]:
    """The newest checkpoint up to that version, and the commits from there on."""
    folder = place / delta.LOG_FOLDER
    first, found = 0, {}
    for one in whole_checkpoints(folder):
        if one.version <= version:
            first, found = one.version, {one.file.name: one.content}
            break
    for number in range(first, version + 1):
        file = delta.commit_file(folder, number)
        try:
            found[file.name] = store.read(file)
        except FileNotFoundError:
            if number > first or not found:  # that of the checkpoint is not needed
                raise
    return found


def below(place: Location, path: str) -> Location:
    """The file of that path, parts with slashes between them, below a place."""
    for part in Path(path).parts:
        place = place / part
    return place
