"""A mirrored table, told by a model: transactions of a database, and the connector that reads its log.

The connector crashes, redelivers, and takes snapshots anew, also where it has lost changes for ever. What
the model knows of databases: a snapshot sees what was committed before it, a change carries the position at
which it was written, and changes arrive in the order of commits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.envelopes import AT_MS, envelope, row

START = datetime(2026, 3, 1, tzinfo=UTC)
PARTITIONS = 3
KEYS = 6


@dataclass(frozen=True, kw_only=True)
class Change:
    """One record of the change topic. `op` is r (a snapshot's row), c, u, d or t (all rows are gone)."""

    key: int | None
    value: int | None
    op: str
    snapshot: str
    """What Debezium says in `source.snapshot`: false, first, true, last, incremental."""
    position: int
    """`source.lsn`."""

    @property
    def identity(self) -> tuple[object, ...]:
        change = "change" if self.op in "cud" else self.op
        return (change, self.snapshot, self.position, self.key, self.value)

    def told(self, database: str) -> dict[str, Any]:
        """The envelope of it, with `value` as the name of a row of people.

        MySQL tells up to three rows at one place, and the whole row before; a snapshot is read between them.
        """
        file, at = f"binlog.{self.position // 30:06}", self.position * 100
        if self.op == "r":
            place = {"file": file, "pos": at, "row": 0}
        else:
            place = {"file": file, "pos": at // 300, "row": self.position % 3}
        now = None if self.value is None else row(self.key or 0, str(self.value))
        return envelope(
            database, self.op, place if database == "mysql" else {"lsn": self.position},
            before=row(self.key or 0, "it was" if database == "mysql" else None) if self.op == "d" else None,
            after=now,
            snapshot=self.snapshot, ts_ms=AT_MS + self.position,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A change as it lies in the topic."""

    change: Change
    partition: int
    offset: int
    at: datetime
    epoch: int = 0


@dataclass
class Mirror:
    """The table, its log, and how much of that the connector has told."""

    draw: random.Random
    rows: dict[int, int] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    told: int = 0
    sent: list[Sent] = field(default_factory=list)
    _open: list[Change] = field(default_factory=list)
    """Written, and not committed yet."""
    _position: int = 0
    _at: datetime = START

    def transaction(self) -> None:
        """Some changes, committed at once or some time later."""
        if self._open:
            self._commit([one for one in self._open if one.op == "c" or one.key in self.rows])
            self._open = []
        written = self._written()
        if self.draw.random() < 0.3 and all(one.op != "t" for one in written):
            self._open = written
        else:
            self._commit(written)

    def snapshot(self, *, whole: bool) -> None:
        """All rows at this moment, then on from here; what was not told of the log never will be.

        Of an empty table it leaves no record, so that nobody can know: then nothing may be lost.
        """
        if not self.rows:
            self.stream()
            return
        self.told = len(self.log)
        self._wait()
        found = list(self.rows.items())
        self.draw.shuffle(found)
        names = ["first", *["true"] * (len(found) - 2), "last"][-len(found) :]
        if not whole:
            found = found[: self.draw.randrange(len(found))]
        for (key, value), name in zip(found, names, strict=False):
            self._send(Change(key=key, value=value, op="r", snapshot=name, position=self._position))

    def incremental(self) -> None:
        """Some rows as they are, between the changes; nothing is said of others."""
        self.stream()
        for key, value in self.rows.items():
            if self.draw.random() < 0.5:
                self._send(
                    Change(key=key, value=value, op="r", snapshot="incremental", position=self._position)
                )

    def stream(self) -> None:
        """The changes that were not told yet; after a crash some of them once more."""
        if self.draw.random() < 0.4 and self.told < len(self.log):
            crashed = self.draw.randint(self.told, len(self.log))
            for change in self.log[self.told : crashed]:
                self._send(change)
            self.told = self.draw.randint(self.told, crashed)
        for change in self.log[self.told :]:
            self._send(change)
        self.told = len(self.log)

    def _written(self) -> list[Change]:
        found: list[Change] = []
        rows = dict(self.rows)
        for _ in range(self.draw.randint(1, 3)):
            self._position += 1
            key, value = self.draw.randrange(KEYS), self.draw.randrange(1000)
            if key in rows and self.draw.random() < 0.4:
                del rows[key]
                found.append(Change(key=key, value=None, op="d", snapshot="false", position=self._position))
            elif not found and self.draw.random() < 0.15:
                rows.clear()
                found.append(Change(key=None, value=None, op="t", snapshot="false", position=self._position))
            else:
                op = "u" if key in rows else "c"
                rows[key] = value
                found.append(Change(key=key, value=value, op=op, snapshot="false", position=self._position))
        return found

    def _commit(self, changes: list[Change]) -> None:
        for change in changes:
            if change.op == "t":
                self.rows.clear()
            elif change.value is None:
                self.rows.pop(change.key or 0, None)
            else:
                self.rows[change.key or 0] = change.value
        self.log += changes
        self._position += 1  # a commit has a place of its own

    def _send(self, change: Change) -> None:
        if change.op == "t":
            self._wait()
        partition = 0 if change.key is None else change.key % PARTITIONS
        offset = sum(one.partition == partition for one in self.sent)
        self.sent.append(Sent(change=change, partition=partition, offset=offset, at=self._at))
        if change.op == "t" or self.draw.random() < 0.5:
            self._wait()

    def _wait(self) -> None:
        self._at += timedelta(milliseconds=1)


def history(seed: int, steps: int) -> Mirror:
    """A table from its first snapshot on; at its end the connector has told all that was committed."""
    draw = random.Random(seed)
    mirror = Mirror(draw=draw)
    for _ in range(3):
        mirror.transaction()
    mirror.snapshot(whole=True)
    for _ in range(steps):
        {
            "transaction": mirror.transaction,
            "stream": mirror.stream,
            "incremental": mirror.incremental,
            "interrupted": lambda: interrupted(mirror),
            "again": lambda: mirror.snapshot(whole=True),
        }[
            draw.choices(["transaction", "stream", "incremental", "interrupted", "again"], [8, 4, 1, 1, 1])[0]
        ]()
    mirror.stream()
    return mirror


def interrupted(mirror: Mirror) -> None:
    """A snapshot that a crash ends: either it is begun anew, or given up where nothing else was lost."""
    if mirror.draw.random() < 0.5:
        mirror.stream()
        mirror.snapshot(whole=False)
    else:
        mirror.snapshot(whole=False)
        mirror.transaction()
        while not mirror.rows:  # of an empty table nobody could know what was lost with the first
            mirror.transaction()
        mirror.snapshot(whole=True)


def delayed(mirror: Mirror, seed: int) -> Mirror:
    """The same, but what goes to one partition waits up to 6 ms (a linger, a retry, a slow leader), what goes
    to another does not: Kafka keeps the order within each, and none across them."""
    draw = random.Random(seed)
    newest = [START] * PARTITIONS
    sent = []
    for one in mirror.sent:
        waits = draw.choice((0, 0, 1, 2, 4, 6))
        newest[one.partition] = max(newest[one.partition], one.at + timedelta(milliseconds=waits))
        sent.append(replace(one, at=newest[one.partition]))
    return replace(mirror, sent=sent)


def undecided(mirror: Mirror, key: int, *, live: bool) -> bool:
    """Whether nobody can know by the topic that a barrier came after the key's newest change, or before it.

    It has no record in the key's partition; and of a change that was written before it and committed after
    it (a live row), or of a deleted row's, Kafka's time says the contrary of what was.
    """
    sent = first_of_each(mirror.sent)
    newest = [one for one in sent if one.change.key == key][-1]
    barriers: dict[object, list[Sent]] = {}
    for one in sent:
        if one.change.op == "t":
            barriers[one.partition, one.offset] = [one]
        elif one.change.snapshot in ("first", "true", "last"):
            barriers.setdefault(one.change.position, []).append(one)
    return any(
        newest.partition not in {one.partition for one in told}
        and (newest.at < min(one.at for one in told)) is live
        and (not live or newest.change.position < told[0].change.position)
        for told in barriers.values()
    )


def first_of_each(sent: list[Sent]) -> list[Sent]:
    """What ingest leaves of the topic: no redelivery."""
    seen: set[object] = set()
    found = []
    for one in sent:
        if one.change.identity not in seen:
            seen.add(one.change.identity)
            found.append(one)
    return found
