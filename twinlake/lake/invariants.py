"""Invariants: what must hold of a lake, each a named predicate over plain states, before and after.

A predicate returns what is broken, in plain sentences; nothing where it holds. The running server asks them
before it commits (`twinlake/lake/self_check.py`), tests and runs that break things ask them of what they have
read. No I/O, no Spark: whoever asks makes the states. What a state has as None, nobody has counted: a
predicate says nothing about that. docs/guarantees.md names the promise behind each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Broken = list[str]
Place = tuple[int, int]
"""Epoch and partition of a topic."""
NONE: Mapping[Place, int] = {}


@dataclass(frozen=True, kw_only=True)
class LogState:
    """A log as its newest commit says, and, of what somebody has counted in its rows, the numbers."""

    topic: str
    batch: int = 0
    kind: str = "batch"
    """What made the newest batch: `batch`, `accept` or `replay`."""
    ends: Mapping[Place, int] = field(default_factory=dict)
    """The next offset to read."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Records by their latest verdict."""
    copies: int = 0
    """Rows that replays have added beside the records."""
    added: int | None = None
    """Rows that the newest batch has added, where that is the only one since the state before."""
    watermark: int | None = None
    history: str = ""
    """Which records of Kafka these are; "" where that is not known."""
    batches: Sequence[int] | None = None
    """Counted: the batch numbers of the commits that are still there, in their order."""
    held: int | None = None
    """Counted: the rows in storage."""
    originals: Mapping[Place, int] | None = None
    """Counted: the rows in storage that no replay has made."""
    distinct: Mapping[Place, int] | None = None
    """Counted: the different offsets of those."""
    acknowledged: Mapping[Place, int] | None = None
    """Counted by who produced: the records that Kafka has acknowledged and the log has had time to read."""
    quarantined: int | None = None
    """Counted: the records that the quarantine shows."""

    @property
    def records(self) -> int:
        return sum(self.counts.values())

    @property
    def rows(self) -> int:
        return self.records + self.copies


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """How many records have been counted, and which: sums of `_rows`, `_hash_low`, `_hash_high`."""

    rows: int
    low: int
    high: int


@dataclass(frozen=True, kw_only=True)
class VersionState:
    """A version of a stored kind between two steps."""

    name: str
    """Table and version, for the sentences."""
    position: int = 0
    """The batch of its log up to which it has counted."""
    step: int = 0
    segment: int = 0
    """The open one."""
    steps_open: int = 0
    """How many steps are in it."""
    records: int = 0
    """The log's rows up to the position, as it has written down."""
    history: str = ""
    """Which records of Kafka those are; "" where that is not known."""
    steps: Sequence[int] | None = None
    """Counted: the numbers of the steps and closes whose commits are still there, in their order."""
    evidence: Evidence | None = None
    """Counted: the sums of its rows."""


@dataclass(frozen=True, kw_only=True)
class ReleaseState:
    number: int = 0
    tables: Mapping[str, str] = field(default_factory=dict)
    """By table its version."""
    positions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By table and topic, the batch that the version had reached."""


@dataclass(frozen=True, kw_only=True)
class ReaderState:
    """What one statement has seen."""

    release: int | None = None
    """The newest one that it saw; None where it does not say."""
    versions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By table, the versions of which it saw rows."""
    positions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By table and topic, the batch up to which it saw."""


@dataclass(frozen=True, kw_only=True)
class CertificateState:
    name: str
    """Table and version, for the sentences."""
    position: Mapping[str, int]
    compared: int
    differing: int
    equal: bool


# -- a log


def nothing_lost(old: LogState, new: LogState) -> Broken:
    """Every record that was read, or acknowledged, is in the log; none goes."""
    found = [
        f"{_place(new, at)}: {count} records are in the log, and {acked} were acknowledged"
        for at, acked in (new.acknowledged or NONE).items()
        if new.originals is not None and (count := new.originals.get(at, 0)) < acked
    ]
    found += [
        f"{_place(new, at)}: {now} records are in the log, and there were {count}"
        for at, count in (old.originals or NONE).items()
        if new.originals is not None and (now := new.originals.get(at, 0)) < count
    ]
    if new.records < old.records:
        found.append(f"log {new.topic}: {old.records} records were counted, now {new.records}")
    if new.held is not None and new.held < new.rows:
        found.append(f"log {new.topic}: it counts {new.rows} rows and has {new.held}")
    if _follows(old, new) and (came := new.rows - old.rows) > (new.added or 0):
        found.append(f"log {new.topic}: batch {new.batch} counts {came} rows and adds {new.added}")
    return found


def nothing_doubled(old: LogState, new: LogState) -> Broken:
    """No record is in the log twice as an original, and none is counted that was not read."""
    found = [
        f"{_place(new, at)}: {count} originals of {different} records"
        for at, count in (new.originals or NONE).items()
        if new.distinct is not None and count > (different := new.distinct.get(at, 0))
    ]
    found += [
        f"{_place(new, at)}: {count} records are in the log, which ends at offset {new.ends.get(at, 0)}"
        for at, count in (new.originals or NONE).items()
        if count > new.ends.get(at, 0)
    ]
    found += [
        f"{_place(new, at)}: {count} records are in the log, and {new.acknowledged.get(at, 0)} were produced"
        for at, count in (new.originals or NONE).items()
        if new.acknowledged is not None and count > new.acknowledged.get(at, 0)
    ]
    if new.held is not None and new.held > new.rows:
        found.append(f"log {new.topic}: it counts {new.rows} rows and has {new.held}")
    if _follows(old, new) and (came := new.rows - old.rows) < (new.added or 0):
        found.append(f"log {new.topic}: batch {new.batch} counts {came} rows and adds {new.added}")
    offsets = sum(end - old.ends.get(at, 0) for at, end in new.ends.items())
    if (came := new.records - old.records) > max(0, offsets):
        found.append(f"log {new.topic}: {came} more records were counted over {offsets} more offsets")
    return found


def offsets_only_advance(old: LogState, new: LogState) -> Broken:
    """The next offset of a partition goes back in no epoch."""
    return [
        f"{_place(new, at)}: the next offset was {end}, now it is {new.ends.get(at)}"
        for at, end in old.ends.items()
        if new.ends.get(at, -1) < end
    ]


def batches_without_gap(old: LogState, new: LogState) -> Broken:
    """Batches count up by one, each once. Between the states only commits that are there are asked for."""
    if new.batch < old.batch:
        return [f"log {new.topic}: it was at batch {old.batch}, now it is at {new.batch}"]
    if new.added is not None and new.batch != old.batch + 1:
        return [f"log {new.topic}: batch {new.batch} follows {old.batch}"]
    if not new.batches:
        return []
    found = _gaps(f"log {new.topic}: batch", new.batches)
    if new.batches[-1] != new.batch:
        found.append(f"log {new.topic}: it is at batch {new.batch}, its last commit is {new.batches[-1]}")
    return found


def verdicts_stand(old: LogState, new: LogState) -> Broken:
    """A verdict is given once: without a replay none has fewer records than before."""
    if new.kind == "replay" or new.copies > old.copies:
        return []
    return [
        f"log {new.topic}: {count} records were {verdict}, now {new.counts.get(verdict, 0)}"
        for verdict, count in old.counts.items()
        if new.counts.get(verdict, 0) < count
    ]


def watermark_never_back(old: LogState, new: LogState) -> Broken:
    """What is final stays final."""
    if old.watermark is None or (new.watermark is not None and new.watermark >= old.watermark):
        return []
    return [f"log {new.topic}: the watermark was {old.watermark}, now it is {new.watermark}"]


def replay_changes_nothing(old: LogState, new: LogState) -> Broken:
    """Between two states with nothing but a repeated replay between them, everything is the same."""
    pairs = {
        "batch": (old.batch, new.batch), "rows": (old.rows, new.rows), "offsets": (old.ends, new.ends),
        "verdicts": (old.counts, new.counts),
    }  # fmt: skip
    return [
        f"log {new.topic}: {name} were {before}, now {after}"
        for name, (before, after) in pairs.items()
        if before != after
    ]


def quarantine_in_reach(log: LogState, good: Iterable[str] = ("valid", "ignored")) -> Broken:
    """Every record without a good verdict is shown by the quarantine, and no other."""
    wanted = log.records - sum(log.counts.get(verdict, 0) for verdict in good)
    if log.quarantined is None or log.quarantined == wanted:
        return []
    return [f"log {log.topic}: {wanted} records are in quarantine, it shows {log.quarantined}"]


# -- a version


def steps_without_gap(old: VersionState, new: VersionState) -> Broken:
    """Steps count up by one, each once; between the states only commits that are there are asked for."""
    if new.step < old.step:
        return [f"{new.name}: it was at step {old.step}, now it is at {new.step}"]
    if new.steps is None:
        return []
    found = _gaps(f"{new.name}: step", new.steps)
    if new.steps and new.steps[-1] != new.step:
        found.append(f"{new.name}: it is at step {new.step}, its last commit is {new.steps[-1]}")
    return found


def segments_closed_once(old: VersionState, new: VersionState) -> Broken:
    """A closed segment gets no more rows: the open one counts up, and each takes a step to close."""
    if new.segment < old.segment:
        return [f"{new.name}: segment {old.segment} was open, now {new.segment}, which was closed"]
    if (closed := new.segment - old.segment) > (steps := new.step - old.step):
        return [f"{new.name}: {closed} segments were closed in {steps} steps"]
    return []


def positions_never_back(old: VersionState, new: VersionState) -> Broken:
    """A version never uncounts a batch, and moves by steps alone."""
    found = []
    if new.position < old.position:
        found.append(f"{new.name}: it was at batch {old.position}, now it is at {new.position}")
    if new.records < old.records:
        found.append(f"{new.name}: it had {old.records} records of its log, now {new.records}")
    if new.position > old.position and new.step <= old.step:
        found.append(f"{new.name}: from batch {old.position} to {new.position} without a step")
    return found


def never_ahead_of_log(version: VersionState, log: LogState) -> Broken:
    """A version has counted only batches that its log has."""
    if version.position <= log.batch:
        return []
    return [f"{version.name}: it is at batch {version.position}, ahead of its log ({log.batch})"]


def same_history(version: VersionState, log: LogState) -> Broken:
    """The log at the version's position has the records that the version has counted. `log` is as it was at
    that batch; one whose commit is gone says nothing."""
    if log.batch != version.position:
        return []
    if log.counts and log.rows != version.records:
        return [f"{version.name}: up to batch {log.batch} the log has {log.rows} rows, not {version.records}"]
    if log.history and version.history and log.history != version.history:
        return [f"{version.name}: up to batch {log.batch} the log has other records"]
    return []


def evidence_matches(version: VersionState, expected: Evidence) -> Broken:
    """A version has counted each of the records that its definition takes from the log up to its position,
    once: `expected` is summed from the log."""
    found = version.evidence
    if found is None or found == expected:
        return []
    if found.rows == expected.rows:
        return [f"{version.name}: it has counted {found.rows} records, and not those of the log"]
    how = "more" if found.rows > expected.rows else "fewer"
    return [f"{version.name}: it has counted {found.rows} records, {how} than the {expected.rows} of the log"]


def caught_up(version: VersionState, log: LogState) -> Broken:
    """At rest, every version has the whole log: after a kill and in every hour it gets there by itself."""
    if version.position == log.batch:
        return []
    return [f"{version.name}: it is at batch {version.position}, its log at {log.batch}"]


def speed_equals_batch(certificate: CertificateState) -> Broken:
    """A comparison found no key that differs."""
    if certificate.equal and not certificate.differing:
        return []
    at = ", ".join(f"{topic} batch {batch}" for topic, batch in certificate.position.items())
    text = f"{certificate.differing} of {certificate.compared} keys differ at {at}"
    return [f"{certificate.name}: {text}"]


# -- releases and readers


def release_numbers_without_gap(old: ReleaseState | None, new: ReleaseState) -> Broken:
    """Releases count up by one from 1."""
    before = old.number if old else 0
    return [] if new.number == before + 1 else [f"release {new.number} follows {before or 'none'}"]


def no_reader_goes_back(old: ReleaseState | ReaderState, new: ReleaseState | ReaderState) -> Broken:
    """What is seen later is not older: by topic, no table is at an earlier batch."""
    found = [
        f"table {table}: topic {topic} was seen up to batch {batch}, now {now}"
        for table, positions in old.positions.items()
        for topic, batch in positions.items()
        if (now := new.positions.get(table, {}).get(topic, batch)) < batch
    ]
    before, after = _number(old), _number(new)
    if before is not None and after is not None and after < before:
        found.append(f"release {before} was seen, now {after}")
    return found


def one_release_per_statement(reader: ReaderState, releases: Iterable[ReleaseState]) -> Broken:
    """All that a statement saw belongs together: there is a release with exactly these versions."""
    several = [
        f"table {table}: one statement saw versions {', '.join(sorted(versions))}"
        for table, versions in reader.versions.items()
        if len(versions) > 1
    ]
    if several or any(
        all(versions <= {release.tables.get(table)} for table, versions in reader.versions.items())
        for release in releases
        if reader.release in (None, release.number)
    ):
        return several
    seen = ", ".join(f"{table} {next(iter(one), '-')}" for table, one in sorted(reader.versions.items()))
    return [f"no release {reader.release or ''} has all that one statement saw: {seen}".replace("  ", " ")]


LOG_STEPS = (
    nothing_lost, nothing_doubled, offsets_only_advance, batches_without_gap, verdicts_stand,
    watermark_never_back,
)  # fmt: skip
"""What holds from any state of a log to any later one."""
VERSION_STEPS = (steps_without_gap, segments_closed_once, positions_never_back)
"""What holds from any state of a version to any later one."""


def log_broken(old: LogState, new: LogState) -> dict[str, Broken]:
    """By the name of the invariant, what is broken from one state to a later one."""
    return {check.__name__: found for check in LOG_STEPS if (found := check(old, new))}


def version_broken(old: VersionState, new: VersionState) -> dict[str, Broken]:
    """By the name of the invariant, what is broken from one state to a later one."""
    return {check.__name__: found for check in VERSION_STEPS if (found := check(old, new))}


def _place(log: LogState, at: Place) -> str:
    return f"log {log.topic}, epoch {at[0]}, partition {at[1]}"


def _follows(old: LogState, new: LogState) -> bool:
    return new.added is not None and new.batch == old.batch + 1


def _gaps(what: str, numbers: Sequence[int]) -> Broken:
    return [f"{what} {after} follows {before}" for before, after in pairwise(numbers) if after != before + 1]


def _number(state: ReleaseState | ReaderState) -> int | None:
    return state.release if isinstance(state, ReaderState) else state.number
