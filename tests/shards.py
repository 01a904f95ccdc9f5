"""What takes long, divided into shards: each is one run of at most fifteen minutes on two cores. `chaos` is
fifteen minutes of chaos, and its beginning and end."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path, PurePath

import pytest

from twinlake.base.version import commit_of

TESTS = Path(__file__).parent

SHARDS: dict[str, tuple[str, ...]] = {
    "kill_points": ("kill/test_points.py",),
    "kills": ("kill",),
    "kills_told": (
        "kill/test_changelog.py",
        "kill/test_events.py",
        "kill/test_published.py",
        "kill/test_webhook.py",
    ),
    "cluster": ("cluster", "spark/test_watch.py"),
    "store": ("store",),
    "store_backup": ("store/test_backup.py",),
    "store_kills": ("store/test_kill_in_hdfs.py",),
    "disks": (
        "faults/test_full_disk_of_broker.py",
        "faults/test_full_disk_of_lake.py",
        "faults/test_full_disk_of_records.py",
        "faults/test_full_disk_to_well.py",
    ),
    "servers": ("faults", "services", "setup", "demo", "oracle"),
    "given": ("faults/test_given.py",),
    "gallery": ("faults/test_gallery.py", "gallery", "cli", "scaffold"),
    "locked": ("services/supervise/test_locked.py",),
    "airflow": ("dags", "services/test_airflow.py"),
    "own_airflow": ("dags/test_own_airflow.py",),
    "tour": ("tour",),
    "tutorials": ("tutorials",),
    "guides": ("tutorials/test_guides.py",),
    "wheel": ("wheel",),
    "week": ("week",),
    "chaos": ("chaos",),
    "ingest": ("ingest",),
    "changelog": ("changelog", "published", "webhooks"),
    "laws": ("laws", "kinds", "definitions", "speed", "small_lake", "lake", "benchmarks"),
    "reading": ("reading",),
    "limits": (
        "reading/test_away.py",
        "reading/test_flight_wire.py",
        "reading/test_heavy.py",
        "reading/test_loops.py",
        "reading/test_over_limits.py",
    ),
    "releases": ("releases", "batch", "difference", "lineage"),
    "witness": ("witness",),
    "console": ("console",),
    "alarms": ("alarms",),
    "backup": ("backup",),
}
"""Shard -> the folders and files below `tests/` whose long tests it runs. The longest path that fits wins."""


ALWAYS = ("tour", "wheel")
"""What CI runs of every commit, where its machine is not too slow: it says what it left out."""


def shard_of(path: PurePath) -> str:
    """The shard of a test file, given below `tests/`; KeyError for a file that none has."""
    fits = {
        len(PurePath(place).parts): name
        for name, places in SHARDS.items()
        for place in places
        if path.is_relative_to(place)
    }
    if not fits:
        raise KeyError(str(path))
    return fits[max(fits)]


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the long tests of the shard that `--shard` names. A long test that no shard has is an error."""
    wanted = config.option.shard
    kept, left = [], []
    for item in items:
        shard = None
        if item.get_closest_marker("faults") or item.get_closest_marker("cluster"):
            try:
                shard = shard_of(item.path.relative_to(TESTS))
            except KeyError as error:
                raise pytest.UsageError(
                    f"{error.args[0]} has a long test and no shard runs it: name it in tests/shards.py"
                ) from None
        (kept if shard == wanted else left).append(item)
    if wanted:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def drawn(commit: str) -> str:
    """The shard that CI runs for a commit beside those of ALWAYS: the same for the same commit, each equally
    often."""
    shards = sorted(set(SHARDS) - set(ALWAYS))
    return shards[int(hashlib.sha256(commit.encode()).hexdigest(), 16) % len(shards)]


if __name__ == "__main__":
    found = commit_of(TESTS.parent)
    if found is None:
        sys.exit("which shard runs is drawn by the commit's hash, and this is not a git checkout")
    print(drawn(found))
