"""History: how far the logs reach back that tables would be built from, and how fast this lake builds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from twinlake.base.as_json import to_json
from twinlake.base.times import format_moment, from_micros
from twinlake.lake.catalog.runs import Runs
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.plan import History
from twinlake.topics.verdict import rows_in

LONG_BUILD_RECORDS = 100_000
"""A build of fewer records measures its overhead, not its rate."""


class Histories(dict[str, History]):
    """By topic; one that nobody asks for is not looked up."""

    def __init__(self, lake: OpenLake) -> None:
        super().__init__()
        self._lake = lake

    def __missing__(self, topic: str) -> History:
        found = self[topic] = history(self._lake.logs[topic])
        return found


def history(log: Log) -> History:
    """What the log of a topic could rebuild from: by its newest commit, the sizes of its files, and the first
    batches that have records of every partition."""
    name, metadata = log.topic.name, log.metadata()
    end = int(metadata.get("batch", 0))
    if end == 0:
        return History(topic=name, records=0, bytes=0, why="the log is empty")
    firsts = _firsts(log, metadata.get("ends", {}), end)
    first_at = to_json(min((at for _, at in firsts.values()), default=None))
    late = sorted((*key, offset) for key, (offset, _) in firsts.items() if offset > 0)
    kept = frozenset[str]()
    why = "the log holds every record of the topic" + (f" since {first_at}" if first_at else "")
    start = log.start
    if start is not None:
        until = format_moment(from_micros(start.until))
        kept = frozenset(one.fingerprint for one in start.kept)
        why = f"retention has deleted the log's records up to {until}, so that no new logic sees them"
    elif late:
        gaps = ", ".join(f"partition {partition} from offset {first}" for _, partition, first in late)
        why = f"the log begins later than the topic: {gaps}"
    return History(
        topic=name, records=rows_in(metadata.get("counts", {})), complete=not late and start is None, why=why,
        kept=kept,
        bytes=int(delta.snapshot(log.spark, log.path).sizeInBytes()),
    )  # fmt: skip


def _firsts(
    log: Log, ends: Mapping[str, Mapping[str, int]], end: int
) -> dict[tuple[int, int], tuple[int, datetime]]:
    """By epoch and partition, the first offset that the log has, and the first time."""
    from pyspark.sql import functions as F

    wanted = {(int(epoch), int(one)) for epoch, ones in ends.items() for one, to in ones.items() if to}
    found: dict[tuple[int, int], tuple[int, datetime]] = {}
    after, to = 0, 1
    while after < end and not wanted <= found.keys():
        first = F.min("offset").alias("first")
        rows = log.all(after, to).groupBy("epoch", "partition").agg(first, F.min("timestamp").alias("at"))
        for row in rows.collect():
            found.setdefault((row["epoch"], row["partition"]), (row["first"], row["at"]))
        after, to = to, min(8 * to, end)
    return found


def measured_rate(runs: Runs) -> float | None:
    """Records per second of this lake's last long build, which tells more than any constant."""
    for job in runs.all():
        if job.kind != "build" or job.state != "succeeded" or not job.result:
            continue
        records, seconds = job.result["records"], job.result["seconds"]
        if job.result["built"] and records > LONG_BUILD_RECORDS and seconds:
            return float(records / seconds)
    return None
