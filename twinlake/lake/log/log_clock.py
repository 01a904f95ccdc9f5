"""What a log's clocks said at one of its batches, and which batch was its last at a moment.

Commits tell both, and are cleaned up after hours; beyond that the log's rows do, which stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import UsageError
from twinlake.base.times import EPOCH, format_moment, from_micros
from twinlake.kinds.grid import micros
from twinlake.kinds.kind import UNKNOWN_TIME
from twinlake.lake.delta import kept_commits
from twinlake.lake.log.clock_fold import Fold, LogClock
from twinlake.topics import change_data
from twinlake.topics.verdict import VALID

if TYPE_CHECKING:
    from twinlake.lake.log.log import Log

CLOCKS_APART = timedelta(minutes=2)
"""The machine that reads a log may be so far behind the one that writes it."""


def clock_at(log: Log, batch: int) -> LogClock:
    """What the commit of that batch says: read from it, or folded from the rows up to it."""
    kept = kept_commits.last_at(log.path, _batch, batch)
    if kept is not None and kept.metadata["batch"] == batch:
        metadata = kept.metadata
        return LogClock(watermark=metadata["watermark"], clocks=dict(metadata.get("clocks", {})))
    return fold_at(log, batch).clock


def position_at(log: Log, moment: datetime, now: datetime) -> int:
    """The last batch that had been added to the log at the moment, by the log's own clock, which never goes
    back; UsageError where there was none, or the log does not know: a clock that was ahead when a batch was
    added stands still until then."""
    literal, ahead = (moment_sql(micros(one - EPOCH)) for one in (moment, now + CLOCKS_APART))
    (found,) = (
        log.all(0, log.end())
        .selectExpr(
            f"max(if(ingested_at <= {literal}, batch, NULL)) AS last",
            "unix_micros(min(ingested_at)) AS first",
            "max(if(ingested_at IS NULL, batch, NULL)) AS untold",
            f"unix_micros(max(if(ingested_at <= {ahead}, ingested_at, NULL))) AS sure",
            f"min(if(ingested_at > {ahead}, batch, NULL)) AS ahead",
        )
        .collect()
    )
    topic, text, start = log.topic.name, format_moment(moment), log.start
    if found["ahead"] is not None and micros(moment - EPOCH) > (found["sure"] or 0):
        why = f"its batches from {found['ahead']} on were added by a clock that is ahead of this one"
        remedy = f"name a position, like position:{topic}={log.end()}"
        raise UsageError(f"the log of {topic} does not reach back to {text}", why, remedy)
    if start and start.clock.ingested is not None and micros(moment - EPOCH) >= start.clock.ingested:
        return max(found["last"] or 0, start.batch)
    if start:
        until = format_moment(from_micros(start.until))
        why = f"retention has deleted its records up to {until}, batch {start.batch}"
        remedy = f"name a later point in time, like position:{topic}={log.end()}"
        raise UsageError(f"the log of {topic} does not reach back to {text}", why, remedy)
    if found["last"] is not None:
        return int(found["last"])
    if found["untold"] is not None:
        why = f"it has not recorded when its batches up to {found['untold']} were added"
        remedy = f"name a position, like position:{topic}={found['untold']}"
        raise UsageError(f"the log of {topic} does not reach back to {text}", why, remedy)
    why, remedy = "no batch was ever added to it", "wait for its first records"
    if found["first"] is not None:
        first = format_moment(from_micros(found["first"]))
        why, remedy = f"its first batch was added at {first}", "name that time, or a later one"
    raise UsageError(f"the log of {topic} was empty at {text}", why, remedy)


def fold_at(log: Log, batch: int) -> Fold:
    """What the log's rows up to that batch say, and what retention has kept of those before its start."""
    at, start = log.started()
    if start is None:
        return Fold().take(by_batch(log, 0, batch, at))
    return start.fold().take(by_batch(log, start.batch, batch, at))


def by_batch(log: Log, after: int, to: int, at: int | None = None) -> Iterable[Mapping[str, Any]]:
    """In order, per batch, epoch and partition what `LogEnd.after` and `judged_again` take of its records."""
    counted = f"verdict = '{VALID}' AND event_time <= timestamp"
    clocks = log.all(after, to, at).selectExpr(
        "batch", "epoch", "partition", "timestamp", "verdict", "ingested_at",
        "coalesce(replay, false) AS copy", f"{_event_time(log)} AS event_time",
    )  # fmt: skip
    parts = clocks.groupBy("batch", "epoch", "partition").agg(
        *(
            _column(f"unix_micros(max({value}))", name)
            for name, value in {
                "seen": "if(copy, NULL, timestamp)",
                "event_time": f"if({counted}, event_time, NULL)",
                "counted": f"if({counted}, timestamp, NULL)",
                "ingested": "ingested_at",
            }.items()
        )
    )
    rows: list[Mapping[str, Any]] = parts.orderBy("batch").toArrow().to_pylist()
    return rows


def _event_time(log: Log) -> str:
    contract = log.topic.contract
    shown = dict(zip((field.name for field in log.topic.newest.fields), log.columns(), strict=False))
    read = {name: sql.rpartition(" AS ")[0] for name, sql in shown.items()}
    if contract.change_data:
        return f"timestamp_micros({change_data.event_micros(f'({read[change_data.SOURCE]})')})"
    return read.get(contract.event_time or "", "CAST(NULL AS TIMESTAMP)")


def _column(sql: str, name: str) -> Any:
    from pyspark.sql import functions as F

    return F.expr(sql).alias(name)


def _batch(metadata: dict[str, Any]) -> int | None:
    return metadata.get("batch")


def moment_sql(micros: int | None) -> str:
    """Microseconds since 1970 as a timestamp literal, NULL as long as there are none."""
    return UNKNOWN_TIME if micros is None else f"TIMESTAMP '{format_moment(from_micros(micros))}'"
