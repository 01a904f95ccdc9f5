"""Propose: what definitions mean now, and how far the logs reach back that they would be built from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
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
from jobs.lake.rolled_back import RolledBack, rolled_back
from jobs.lake.runs import Runs
from jobs.lake.version import Version, stored_versions
from jobs.releases.choose import Chosen, choose, not_named, refuse_unmet
from jobs.releases.plan import RECORDS_PER_SECOND, History, Proposal, decide
from jobs.run import Run
from jobs.times import format_moment
from jobs.topics.topic import load_topic

LONG_BUILD_RECORDS = 100_000
"""A build of fewer records measures its overhead, not its rate."""


def propose(
    lake: OpenLake,
    definitions: Mapping[str, Mapping[str, Any]],
    git_commit: str | None,
    run: Run,
    tables: Collection[str] | None = None,
) -> Plan:
    """The plan that makes these definitions live, stored, so that the next steps mean the same.

    `definitions` maps each table to its JSON. `tables` limits the plan to some and what reads them; without
    them what was rolled back is left out. DefinitionError names what is wrong with a definition, such as that
    it reads a table that is not among them; NotFoundError a topic that the lake has not; UsageError a topic
    whose files were added or have changed since the server started.
    """
    written = {table.name: table for table in _named(definitions)}
    live, lived = _live(lake)
    if tables is None:
        stays = _taken_back(lake, written, live, run)
        chosen = choose(written, lived, stays)
    else:
        chosen = choose(written, lived, not_named(written, lived, tables))
        refuse_unmet(tables, chosen)
    proposals = _proposals(lake, chosen, live, run)
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
        stays=chosen.stays,
    )
    lake.plans.save(plan)
    return plan


def _live(lake: OpenLake) -> tuple[dict[str, Version], dict[str, Kind]]:
    """By table, the live versions whose definition can be read, and that."""
    live = release_log.live(lake.path)
    wanted = set(live.tables.items()) if live else set()
    versions, definitions = dict[str, Version](), dict[str, Kind]()
    for version in lake.versions.living():
        if (version.table, version.name) in wanted:
            with suppress(TwinlakeError):  # one that is not understood any more is no choice
                definitions[version.table] = from_json(version.definition)
                versions[version.table] = version
    return versions, definitions


def _proposals(lake: OpenLake, chosen: Chosen, live: Mapping[str, Version], run: Run) -> list[Proposal]:
    """Each after those that it reads. A table that stays is not looked at again, whatever its contract or the
    engine is now; only one whose live version can never go on, or reads one that changes, is."""
    usable = {(version.table, version.name) for version in lake.versions.usable()}
    proposals: list[Proposal] = []
    known, fingerprints, settled = dict[str, Kind](), dict[str, str](), set[str]()
    for number, table in enumerate(ordered(chosen.tables.values())):
        run.progress(number, len(chosen.tables), "tables", f"analysing {table.name}")
        version = live.get(table.name)
        if (
            table.name in chosen.stays
            and version is not None
            and (version.table, version.name) in usable
            and settled.issuperset(table.reads)
        ):
            settled.add(table.name)
            proposal = Proposal(
                table=table.name, definition=table.to_json(), fingerprint=version.fingerprint, topics=(),
                stores_rows=is_stored(table), reads=table.reads,
            )  # fmt: skip
        else:
            proposal = _proposal(lake, table, known, fingerprints)
        proposals.append(proposal)
        known[table.name], fingerprints[table.name] = table, proposal.fingerprint
    return proposals


def _taken_back(
    lake: OpenLake, written: Mapping[str, Kind], live: Mapping[str, Version], run: Run
) -> dict[str, tuple[str, ...]]:
    """Of each table that would be again what a rollback took back, what is said of it."""
    found, backs = dict[str, tuple[str, ...]](), dict[str, list[RolledBack]]()
    for back in rolled_back(release_log.releases(lake.path)):
        backs.setdefault(back.table, []).append(back)
    if not backs:
        return found
    versions = {(one.table, one.name): one for one in stored_versions(lake.path)}
    known, fingerprints = dict[str, Kind](), dict[str, str]()
    for table in ordered(written.values()):
        known[table.name] = table
        of = [back for back in backs.get(table.name, ()) if back.version]
        if not of:
            continue
        run.say(f"looking whether {table.name} was rolled back")
        means = _proposal(lake, table, known, fingerprints).fingerprint
        fingerprints[table.name] = means
        definition, blue = table.to_json(), live.get(table.name)
        for back in of:
            version = versions.get((table.name, back.version or ""))
            if _is_again(version, back, means, definition, blue):
                found[table.name] = back.lines()
    for back in (back for some in backs.values() for back in some):
        if back.version is None and back.table in live and back.table not in written:
            found[back.table] = back.lines()
    return found


def _is_again(
    version: Version | None,
    back: RolledBack,
    means: str,
    definition: Mapping[str, Any],
    blue: Version | None,
) -> bool:
    """Whether a definition that means this is that of the version: by its meaning, or, where more than its
    contract, its upstream or the engine was new in it, by its text."""
    if version is None:  # its file is torn
        return (back.version or "").startswith(means[:12])
    same_text = version.definition == definition and not (blue and blue.definition == definition)
    return same_text or version.fingerprint == means


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


def _proposal(
    lake: OpenLake, table: Kind, known: Mapping[str, Kind], fingerprints: Mapping[str, str]
) -> Proposal:
    """`known` are the definitions before it, those that it reads among them; `fingerprints` what is known."""
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
        fingerprint=fingerprint(table, topics, lake.spark, known, fingerprints),
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
