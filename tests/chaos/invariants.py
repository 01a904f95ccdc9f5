"""The invariants (`twinlake/lake/invariants.py`), asked of the lake that a run leaves and what it showed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from tests import states
from twinlake.lake import invariants as must
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.certificates import Certificate
from twinlake.lake.invariants import (
    Broken,
    CertificateState,
    LogState,
    ReaderState,
    ReleaseState,
    VersionState,
)


def broken(
    lake: Path, topic: str, partitions: list[int], quarantined: int, certificates: list[Certificate]
) -> Iterator[str]:
    """Of a lake at rest, one line for each sentence. `partitions` has that of each committed record,
    `quarantined` is how many records readers are shown in quarantine."""
    batches = states.log_history(lake / "logs" / topic, topic)
    log = states.with_rows(batches, lake / "logs" / topic)
    (epoch,) = {epoch for epoch, _ in log.originals or ()}
    committed = {(epoch, partition): count for partition, count in Counter(partitions).items()}
    log = replace(log, acknowledged=committed, quarantined=quarantined)
    yield from _log(batches, log)
    history = release_log.releases(lake)
    live = {lake / "tables" / table / name for table, name in history[-1].tables.items()}
    for path in sorted(one.parent for one in (lake / "tables").glob("*/*/_delta_log")):
        label = f"{path.parent.name} {path.name}"
        if steps := states.version_history(path, label, topic):
            now = states.with_steps(steps)
            yield from _version(steps, now, log)
            if path in live:
                for check in (must.same_history, must.caught_up):
                    yield from _named(check.__name__, check(now, log))
    yield from _named("releases", _releases([states.release_state(one) for one in history]))
    for one in certificates:
        made = CertificateState(
            name=f"{one.table} {one.version}", position=one.position, compared=one.rows_compared,
            differing=one.differing, equal=one.equal,
        )  # fmt: skip
        yield from _named("speed_equals_batch", must.speed_equals_batch(made))


def broken_for_reader(seen: list[ReaderState], released: dict[int, int]) -> Iterator[str]:
    """`seen` has the tags of rows as versions; `released` by release the tag that its definitions have."""
    releases = [
        ReleaseState(number=number, tables={"totals": str(tag), "visits": str(tag)})
        for number, tag in released.items()
    ]
    for one in seen:
        if one.release in released:
            yield from _named("one_release_per_statement", must.one_release_per_statement(one, releases))
    for before, after in pairwise(seen):
        yield from _named("no_reader_goes_back", must.no_reader_goes_back(before, after))


def replay_changed(before: LogState, after: LogState) -> Iterator[str]:
    yield from _named("replay_changes_nothing", must.replay_changes_nothing(before, after))


def _log(history: list[LogState], now: LogState) -> Iterator[str]:
    for before, after in [*pairwise(history), (LogState(topic=now.topic), now)]:
        for name, found in must.log_broken(before, after).items():
            yield from _named(name, found)
    yield from _named("quarantine_in_reach", must.quarantine_in_reach(now))


def _version(history: list[VersionState], now: VersionState, log: LogState) -> Iterator[str]:
    for before, after in [*pairwise(history), (history[-1], now)]:
        for name, found in must.version_broken(before, after).items():
            yield from _named(name, found)
    yield from _named("never_ahead_of_log", must.never_ahead_of_log(now, log))


def _releases(history: list[ReleaseState]) -> Broken:
    found = must.release_numbers_without_gap(None, history[0])
    for before, after in pairwise(history):
        found += must.release_numbers_without_gap(before, after)
        found += must.no_reader_goes_back(before, after)
    return found


def _named(name: str, sentences: Broken) -> Iterator[str]:
    for sentence in sentences:
        yield f"{name}: {sentence}"
