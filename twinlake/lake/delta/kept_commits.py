"""Which of a Delta table's commits are kept: the last one at some position, and for how long it is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twinlake.base.location import Location
from twinlake.lake.delta import delta
from twinlake.lake.delta.delta import Commit
from twinlake.lake.storage import store

KEEP_COMMITS_S = 2 * 3600
"""Commit files younger than this stay readable by version, for readers and comparisons that are under way."""
_MARGIN_S = 600
"""What is read by version now is still there when the longest statement of a reader ends."""

Place = Callable[[dict[str, Any]], int | None]
"""Where a commit with this metadata stands, None for one that moves nothing; it never goes back."""


def last_at(path: Location, place: Place, at: int) -> Commit | None:
    """The newest commit before the table went beyond `at`, as a commit of that version with the metadata of
    the one that had brought it to where it then was; None where that is not kept. By bisection, no Spark."""
    newest = delta.newest_version(path)
    low, high = _oldest(path) - 1, newest
    while low < high:
        middle = (low + high + 1) // 2
        commit = newest_with_place(path, middle, place)
        if commit is None or (place(commit.metadata) or 0) <= at:
            low = middle
        else:
            high = middle - 1
    commit = newest_with_place(path, low, place)
    return None if commit is None else Commit(version=low, metadata=commit.metadata)


def readable(path: Location, version: int, now_s: float) -> bool:
    """Whether the table can surely be read at that version for a while: it is the newest, or was lately.

    Its data files are kept for hours longer than its commits.
    """
    following = delta.commit_file(path / delta.LOG_FOLDER, version + 1)
    try:
        return now_s - store.stat(following).modified_s < KEEP_COMMITS_S - _MARGIN_S
    except FileNotFoundError:
        return version == delta.newest_version(path)


def newest_with_place(path: Location, version: int, place: Place) -> Commit | None:
    """The newest commit up to that version that tells a place."""
    while (found := delta.commit(path, version)) is not None:
        if place(found.metadata) is not None:
            return found
        version -= 1
    return None


def _oldest(path: Location) -> int:
    """The first commit of those that are there without a gap; 0 where there is none."""
    return min(delta.commits(path / delta.LOG_FOLDER), default=0)
