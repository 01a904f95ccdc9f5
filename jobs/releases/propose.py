"""Propose: what definitions mean now, and how far the logs reach back that they would be built from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobs.as_json import to_json
from jobs.errors import NotFoundError, TwinlakeError, UsageError
from jobs.kinds.all import from_json
from jobs.kinds.analysis import analyse
from jobs.kinds.dependencies import ordered, upstream_topics
from jobs.kinds.fingerprint import fingerprint
from jobs.kinds.kind import Kind, is_stored
from jobs.lake import delta, release_log
from jobs.lake.log import Log
from jobs.lake.open_lake import OpenLake
from jobs.lake.plans import Plan
from jobs.lake.runs import Runs
from jobs.releases.plan import RECORDS_PER_SECOND, History, Proposal, decide
from jobs.run import Run
from jobs.times import format_moment
from jobs.topics.topic import load_topic

LONG_BUILD_RECORDS = 100_000
"""A build of fewer records measures its overhead, not its rate."""


def propose(
    lake: OpenLake, definitions: Mapping[str, Mapping[str, Any]], git_commit: str | None, run: Run
) -> Plan:
    """The plan that makes these definitions live, stored, so that the next steps mean the same.

    `definitions` maps each table to its JSON. DefinitionError names what is wrong with one, such as that it
    reads a table that is not among them; NotFoundError a topic that the lake has not; UsageError a topic
    whose files were added or have changed since the server started.
    """
    proposals: list[Proposal] = []
    known: dict[str, Kind] = {}
    for number, table in enumerate(ordered(_named(definitions))):
        run.progress(number, len(definitions), "tables", f"analysing {table.name}")
        proposals.append(_proposal(lake, table, known))
        known[table.name] = table
    run.progress(1, 1, "tables", "reading how far history reaches")
    lake.damages.look(lake.tables())
    topics = {topic for proposal in proposals for topic in proposal.topics}
    plan = decide(
        live=release_log.live(lake.path),
        proposals=proposals,
        versions=lake.versions.usable(),
        lost=_lost(lake),
        histories={topic: history(lake.logs[topic]) for topic in topics},
        created_at=format_moment(lake.clock()),
        git_commit=git_commit,
        records_per_second=measured_rate(lake.runs) or RECORDS_PER_SECOND,
    )
    lake.plans.save(plan)
    return plan


def _lost(lake: OpenLake) -> dict[tuple[str, str], str]:
    """By table and name, why a living version can never go on."""
    found = {(one.table, one.version): one.error for one in lake.versions.health() if one.lost}
    return {key: error["what"] if error else "" for key, error in found.items()}


def _named(definitions: Mapping[str, Mapping[str, Any]]) -> Iterator[Kind]:
    for name, stored in definitions.items():
        table = from_json(stored)
        if table.name != name:
            raise UsageError(
                f"definition {name!r} calls itself {table.name!r}", "", "give each under its own name"
            )
        yield table


def _proposal(lake: OpenLake, table: Kind, known: Mapping[str, Kind]) -> Proposal:
    """`known` are the definitions before it, those that it reads among them."""
    topics = {}
    for topic in upstream_topics(table, known):
        if topic not in lake.logs:
            raise _not_open(lake, table, topic)
        _refuse_outdated(lake, lake.logs[topic])
        topics[topic] = lake.logs[topic].topic
    analyse(table, topics, lake.spark, known)
    return Proposal(
        table=table.name,
        definition=table.to_json(),
        fingerprint=fingerprint(table, topics, lake.spark, known),
        topics=tuple(topics),
        stores_rows=is_stored(table),
        reads=table.reads,
    )


def _not_open(lake: OpenLake, table: Kind, topic: str) -> TwinlakeError:
    """Why the lake has no log of the topic. ContractError where its files are wrong now."""
    reads = f"table {table.name} reads topic {topic!r}"
    try:
        load_topic(topic, *lake.settings.sources)
    except NotFoundError:
        known = f"it has {', '.join(sorted(lake.logs))}"
        return NotFoundError(f"{reads}, which this lake has not", known, "add its files")
    return UsageError(
        f"{reads}, which is not open",
        "its files were added after the lake server had started, or were wrong then (see `twinlake status`)",
        "restart it with `twinlake down` and `twinlake up`, then plan again",
    )


def _refuse_outdated(lake: OpenLake, log: Log) -> None:
    """Ingest judges by the contract it started with; planning against newer files would promise otherwise."""
    now = load_topic(log.topic.name, *lake.settings.sources)
    if (now.contract.fingerprint, now.newest) != (log.topic.contract.fingerprint, log.topic.newest):
        raise UsageError(
            f"the contract or schema of topic {log.topic.name} has changed",
            "the lake server still works with the files it found when it started",
            "restart it with `twinlake down` and `twinlake up`, then plan again",
        )


def history(log: Log) -> History:
    """What the log of a topic could rebuild from; one look at three narrow columns."""
    from pyspark.sql import functions as F

    name, end = log.topic.name, log.end()
    if end == 0:
        return History(topic=name, records=0, bytes=0, why="the log is empty")
    size = int(delta.snapshot(log.spark, log.path).sizeInBytes())
    firsts = (
        log.all(0, end)
        .groupBy("epoch", "partition")
        .agg(F.min("offset").alias("first"), F.count("*").alias("records"), F.min("timestamp").alias("at"))
        .collect()
    )
    first_at = to_json(min((row["at"] for row in firsts), default=None))
    late = sorted((row["epoch"], row["partition"], row["first"]) for row in firsts if row["first"] > 0)
    why = "the log holds every record of the topic" + (f" since {first_at}" if first_at else "")
    if late:
        gaps = ", ".join(f"partition {partition} from offset {first}" for _, partition, first in late)
        why = f"the log begins later than the topic: {gaps}"
    return History(
        topic=name, records=sum(row["records"] for row in firsts), bytes=size, complete=not late, why=why
    )


def measured_rate(runs: Runs) -> float | None:
    """Records per second of this lake's last long build, which tells more than any constant."""
    for job in runs.all():
        if job.kind != "build" or job.state != "succeeded" or not job.result:
            continue
        records, seconds = job.result["records"], job.result["seconds"]
        if job.result["built"] and records > LONG_BUILD_RECORDS and seconds:
            return float(records / seconds)
    return None
