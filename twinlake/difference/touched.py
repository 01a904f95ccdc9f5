"""Touched: which rows of a view may have changed between two pins, read from the steps' own files.

Only steps change what a view shows. A merge, and a rebuild that was equal, put the same rows elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from twinlake.base import quote
from twinlake.base.location import Location
from twinlake.kinds.windows import Windows
from twinlake.lake.catalog.maintained_version import LogView, MaintainedVersion, Readable
from twinlake.lake.catalog.version import Pin
from twinlake.lake.delta import delta
from twinlake.lake.delta.data_file import rows_in
from twinlake.lake.delta.kept_commits import newest_with_place
from twinlake.lake.storage import store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_VALUES = 1_000_000
"""`only` holds the values in memory, twice as a join is made; a driver without memory ends."""
_STEPS = ("step", "close")
_SAME_ROWS = ("close", "merge")
"""Commits that move rows and change none, whatever Delta notes of them."""


def is_readable(opened: Readable, pin: Pin) -> bool:
    """Whether all that the pin names is still there: of every version that it is made of, the commits up to
    its own and the files that they tell of. Of a log that a view reads, nothing is deleted.

    A lake that was restored and has gone on has other commits by the same numbers: those are not the pin's.
    """
    return is_known(opened, pin) and all(
        _is_kept(feed.path, of.delta_version) for feed, of in _stored(opened, pin)
    )


def is_known(opened: Readable, pin: Pin) -> bool:
    """Whether this lake has been where the pin tells of, and not one that it was restored from; what the pin
    shows may have been cleaned up since."""
    return _names_all(opened, pin) and all(_tells(feed.path, of) for feed, of in _stored(opened, pin))


def _names_all(opened: Readable, pin: Pin) -> bool:
    """Whether the pin has one of every version that is read."""
    return isinstance(opened, MaintainedVersion) or (
        isinstance(opened, LogView)
        and all(name in pin.reads and _names_all(one, pin.reads[name]) for name, one in opened.reads.items())
    )


def _stored(opened: Readable, pin: Pin) -> Iterator[tuple[MaintainedVersion, Pin]]:
    """Every stored version that the pinned one is made of, with its pin."""
    if isinstance(opened, MaintainedVersion):
        yield opened, pin
    elif isinstance(opened, LogView):
        for name, read in opened.reads.items():
            yield from _stored(read, pin.reads[name])


def is_repaired(feed: MaintainedVersion, old: Pin, new: Pin) -> bool:
    """Whether a commit between two pins of one position may have changed rows, or is not known."""
    return old.delta_version != new.delta_version and _files(feed, old, new) is None


def touched(feed: MaintainedVersion, old: Pin, new: Pin) -> DataFrame | None:
    """The values of `by` of all rows of the view that may differ between two pins of the version, each once.

    None where the files do not tell: the table is not kept by such columns, a commit between the pins or a
    step's file is cleaned up, or one of the commits is not a step and changes rows all the same: a repair.
    None as well of more than MOST_VALUES. Rows of windows that have ended meanwhile are among them.
    """
    by = feed.definition.by
    files = _files(feed, old, new) if by else None
    if files is None:
        return None
    read = feed.spark.read.schema(feed.states)
    rows = feed.definition.shown_in(read.parquet(*map(str, files)) if files else feed.rows().limit(0))
    if not set(by) <= set(rows.columns):
        return None
    found = rows.select(*map(quote.name, by))
    ended = feed.shown(old) != feed.shown(new)
    if ended:
        rows = feed.definition.shown_in(_ended(feed, old, new))
        found = found.union(rows.select(*map(quote.name, by)))
    found = found.distinct()
    return None if (ended or _rows(files) > MOST_VALUES) and found.count() > MOST_VALUES else found


def within(feed: MaintainedVersion, windows: Windows) -> str:
    """The condition on stored rows that they lie in these windows."""
    grid = feed.definition.cells
    return windows.predicate(grid.column) if grid else "true"


def _ended(feed: MaintainedVersion, old: Pin, new: Pin) -> DataFrame:
    """The states at the old pin of windows that were shown there, and no longer are at the new one."""
    (before,), (after,) = feed.shown(old).ranges, feed.shown(new).ranges
    ended, grid = Windows.between(before.start, after.start), feed.definition.cells
    return feed.rows(old.delta_version).where(within(feed, ended.widened(grid.reach) if grid else ended))


def _files(feed: MaintainedVersion, old: Pin, new: Pin) -> list[Location] | None:
    """The data files of the steps after one pin and up to the other; None where they are not all known."""
    assert old.delta_version is not None and new.delta_version is not None
    assert old.step is not None and new.step is not None
    found, steps = list[Location](), 0
    for version in range(old.delta_version + 1, new.delta_version + 1):
        commit = delta.commit(feed.path, version)
        if commit is None:
            return None
        kind = commit.metadata.get("kind")
        steps += kind in _STEPS
        if kind == "step":
            found += [feed.path / name for name in commit.added]
        elif kind not in _SAME_ROWS and commit.changes_data:
            return None
    if steps != new.step - old.step or not store.all_exist(found):
        return None
    return found


def _rows(files: list[Location]) -> int:
    """How many rows files have, by their footers."""
    return sum(map(rows_in, files))


def _tells(path: Location, pin: Pin) -> bool:
    """Whether the table's last step before the pin is the one that the pin tells of, clocks and all."""
    if not pin.step:
        return True  # nothing had come
    if pin.delta_version is None:
        return False
    commit = newest_with_place(path, pin.delta_version, _step)
    if commit is None:
        return False
    (topic,) = pin.position
    found = {name: commit.metadata.get(name) for name in ("step", "position", "watermark", "clocks")}
    return found == {
        "step": pin.step, "position": pin.position, "watermark": pin.watermarks[topic],
        "clocks": pin.clocks[topic],
    }  # fmt: skip


def _step(metadata: dict[str, Any]) -> int | None:
    return metadata["step"] if metadata.get("kind") in _STEPS else None


def _is_kept(path: Location, delta_version: int | None) -> bool:
    if delta_version is None or delta_version > delta.newest_version(path):
        return False
    delta.refuse_torn(path, delta_version)
    try:
        files = DeltaTable(str(path), version=delta_version).file_uris()
    except DeltaError:
        return False
    below = (file.removeprefix("file://").removeprefix(f"{path}/") for file in files)
    return store.all_exist(path / name for name in below)
