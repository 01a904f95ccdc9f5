"""New rows: what the log's batches have added to a table whose rows never change, sent as events.

A row goes out once: with the batch that its record entered by as a valid one, be that of a replay. In the
log's order: by batch, and within a batch by partition and offset. So it makes no difference to a partition's
events how batches are cut into transactions, or who is killed in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from twinlake.base.errors import DifferenceError, LostHistoryError, UsageError
from twinlake.changelog.event_form import EventForm, EventOptions, event_form
from twinlake.changelog.position import Position, SentEvents
from twinlake.changelog.source import Found, Now, Sends
from twinlake.changelog.target import Made, Record
from twinlake.lake.catalog.maintained_version import Opened
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.log.log import Log
from twinlake.lake.open_lake import OpenLake
from twinlake.topics import record_id
from twinlake.topics.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BY_BATCHES = "new batches"
MOST_RECORDS = 200_000
"""Of the log, in one transaction, if no batch alone has more."""
MOST_BATCHES = 1_000
_ORDER = (record_id.BATCH, *record_id.KEY)


class NewRows:
    """Implements `source.Source` for rows that never change."""

    sends: Sends = "events"

    def __init__(self, lake: OpenLake, lake_id: str, table: str, options: EventOptions) -> None:
        self.options = options
        self.target = options.target
        self._lake, self._lake_id, self._table = lake, lake_id, table
        self._form: tuple[str, EventForm] | None = None

    def resend(self, resends: int) -> None:
        """From the next look on, all of history is sent again."""
        self.options = replace(self.options, resends=resends)

    def begun(self, now: Now, all_of_it: bool) -> Position:
        """Where a changelog begins that has sent nothing: at the pin, or at the first record that the log
        has."""
        log = log_of(now.opened)
        (to,) = now.pin.position.values()
        after = _first(log) if all_of_it else to
        made, newest = now.destination.made, newest_row(log, after)
        return self._position(now, after, made, newest, self.options.resends)

    def is_asked(self, sent: Position) -> bool:
        return _of(sent).resends < self.options.resends

    def is_known(self, sent: Position, opened: Opened) -> bool:
        """DifferenceError where the log was restored and has read on: its batches are other ones."""
        log = log_of(opened)
        at = sent.batches.get(log.topic.name)
        if self.is_asked(sent) or at is None or at > log.end():
            return True  # `find` says more of it, or the sender does
        before, found = _of(sent).newest, newest_row(log, at)
        is_deleted = (
            before is not None
            and before[0] <= _first(log)
            and (found is None or found[0] < before[0])
        )  # fmt: skip
        if found != before and not is_deleted:
            raise DifferenceError(
                f"the log of {log.topic.name} is not the one that the events of {self._table} were sent from",
                f"its batch {at} was made at another time: the lake was restored to an earlier state and has "
                "read on, so nobody can tell which records of its batches were sent",
                f"`twinlake changelog {self._table} --resend`, which sends all again, or end it with --stop "
                "and start one to other topics",
            )
        return True

    def find(self, sent: Position | None, now: Now) -> Found:
        if sent is None:
            raise UsageError(
                f"the position of the events of {self._table} is gone",
                f"topic {self.target.positions!r} is empty, so nobody can tell what was sent",
                f"end it with `twinlake changelog {self._table} --stop`, and start one to other topics",
            )
        log, made = log_of(now.opened), now.destination.made
        at, start = log.started()  # what retention deletes from now on is still there by this commit
        after = self._after(sent, log, start.batch if start else 0, made)
        to, newest = _until(log, after, now.pin.position[log.topic.name], at)
        newest = newest or (None if self.is_asked(sent) else _of(sent).newest)
        form = self._form_of(now.opened)
        rows = _rows(now.opened, after, to, at).orderBy(*_ORDER)
        resends = max(self.options.resends, _of(sent).resends)  # of a restored lake the options are older
        position = self._position(now, to, {**_of(sent).topics, **made}, newest, resends)
        headers = {"release": str(now.release)} if self.options.headers == "record-id" else {}
        is_all = to == now.pin.position[log.topic.name]
        return Found(
            way=BY_BATCHES, records=_each(form, form.encoded(rows), log.topic.name, made),
            headers=headers, position=position, rest_s=lambda took_s: took_s if is_all else 0.0,
        )  # fmt: skip

    def forget(self) -> None:
        self._form = None

    def _after(self, sent: Position, log: Log, first: int, made: Mapping[str, Made]) -> int:
        """The batch after which rows are sent; `first` is the last one that retention has deleted."""
        topic = log.topic.name
        if self.is_asked(sent):
            return first
        again = f"`twinlake changelog {self._table} --resend`, which sends all that the log has"
        if topic not in sent.batches:
            raise DifferenceError(
                f"{self._table} is made from topic {topic} now",
                f"its events were sent from topic {', '.join(sent.batches)}, whose positions say nothing of "
                f"{topic}",
                f"{again}, or end it with --stop and start one to other topics",
            )
        for name, one in made.items():
            before = _of(sent).topics.get(name)
            if before and before.id != one.id:
                raise DifferenceError(
                    f"topic {name!r} is another one now",
                    "it was deleted and made again, and what was sent to it is gone",
                    f"{again}, to every topic; or end it with --stop and start one to other topics",
                )  # fmt: skip
        if sent.batches[topic] < first:
            raise LostHistoryError(
                f"events of {self._table} are gone that were not sent",
                f"retention has deleted records up to batch {first} of {topic}, and batch "
                f"{sent.batches[topic]} was sent last",
                f"{again}; or end it with --stop and start one to other topics",
            )
        return sent.batches[topic]

    def _position(
        self, now: Now, to: int, topics: Mapping[str, Made], newest: tuple[int, int | None] | None,
        resends: int,
    ) -> Position:  # fmt: skip
        (topic,) = now.pin.position
        return Position(
            lake=self._lake_id, table=self._table, release=now.release,
            pin={"version": now.opened.version.name, "position": {topic: to}},
            events=SentEvents(topics=dict(topics), resends=resends, newest=newest),
        )  # fmt: skip

    def _form_of(self, opened: Opened) -> EventForm:
        name = opened.version.name
        if self._form is None or self._form[0] != name:
            is_avro = self.options.format == "avro"
            registry = Registry(self._lake.settings.services().registry()) if is_avro else None
            rows = _rows(opened, 0, 0).schema
            self._form = name, event_form(registry, self.options, opened.definition, rows)
        return self._form[1]


def has_events(opened: Opened) -> bool:
    """Whether the table's rows never change, so that they can be sent as events."""
    return _reads_one_log(opened) and _appended(opened, 0, 0) is not None


def log_of(opened: Opened) -> Log:
    """The log that the table's rows come from; UsageError for a table whose rows come from elsewhere."""
    if not _reads_one_log(opened):
        raise _changing(opened)
    (topic,) = opened.definition.inputs
    return opened.logs[topic]


def newest_row(log: Log, to: int) -> tuple[int, int | None] | None:
    """The newest batch up to this one that has rows, and when it was added to the log, in microseconds; None
    where there is none. A log has it for ever, but for retention."""
    for after in dict.fromkeys((to - 1, to - MOST_BATCHES, 0)):
        if found := list(_batches(log, max(after, 0), to)):
            batch, _, added = found[-1]
            return batch, added
    return None


def _until(log: Log, after: int, to: int, at: int) -> tuple[int, tuple[int, int | None] | None]:
    """The last batch of the next transaction, and what `newest_row` says of those in it."""
    records, newest, most = 0, None, min(to, after + MOST_BATCHES)
    for batch, rows, added in _batches(log, after, most, at):
        records, newest = records + rows, (batch, added)
        if records >= MOST_RECORDS:
            return batch, newest
    return most, newest


def _batches(
    log: Log, after: int, to: int, at: int | None = None
) -> Iterator[tuple[int, int, int | None]]:  # fmt: skip
    """Of each batch in (after, to] that has rows: its number, how many, and when it was added."""
    from pyspark.sql import functions as F

    if after >= to:
        return
    added = F.max(F.unix_micros("ingested_at")).alias("added")
    found = log.all(after, to, at).groupBy("batch").agg(F.count("*").alias("rows"), added)
    for row in found.orderBy("batch").collect():
        yield row["batch"], row["rows"], row["added"]


def _rows(opened: Opened, after: int, to: int, at: int | None = None) -> DataFrame:
    """The rows that the batches in (after, to] have added to the table."""
    found = _appended(opened, after, to, at)
    if found is None:
        raise _changing(opened)
    return found


def _reads_one_log(opened: Opened) -> bool:
    return len(opened.definition.inputs) == 1 and not opened.definition.reads


def _changing(opened: Opened) -> UsageError:
    table = opened.version.table
    return UsageError(
        f"rows of {table} change now", "a release has made it another kind of table, and events never change",
        f"end it with `twinlake changelog {table} --stop`, and send its changes to another topic",
    )  # fmt: skip


def _appended(opened: Opened, after: int, to: int, at: int | None = None) -> DataFrame | None:
    log = log_of(opened)
    records = f"{log.traced_sql(relation_sql(log.path, at))} AND batch > {after} AND batch <= {to}"
    return opened.definition.appended(log.spark.sql(records))


def _each(form: EventForm, rows: DataFrame, source: str, made: Mapping[str, Made]) -> Iterator[Record]:
    for row in rows.toLocalIterator(prefetchPartitions=True):
        yield form.record(row, source, made)


def _first(log: Log) -> int:
    """The last batch that retention has deleted; 0 where it has deleted none."""
    start = log.start
    return start.batch if start else 0


def _of(sent: Position) -> SentEvents:
    assert sent.events is not None, "the destination has refused a position of changes"
    return sent.events
