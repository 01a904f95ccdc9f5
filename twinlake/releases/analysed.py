"""Analysed: what Spark has said of definitions for plans, kept for as long as it would say the same."""

from __future__ import annotations

from dataclasses import dataclass, field

from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError
from twinlake.definitions.fingerprint import fingerprint
from twinlake.definitions.premises import hashed, premises
from twinlake.kinds.analysis import analyse
from twinlake.kinds.dependencies import upstream_topics
from twinlake.kinds.kind import Kind, is_stored
from twinlake.lake.catalog.version import Version
from twinlake.lake.log.log import Log
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.plan import Proposal
from twinlake.topics.topic import Topic, load_topic


@dataclass(frozen=True)
class Upstream:
    """The definitions looked at so far, by table: those that the next one reads are among them."""

    tables: dict[str, Kind] = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)
    premises: dict[str, str] = field(default_factory=dict)

    def add(self, table: Kind, fingerprint: str, premises: str) -> None:
        self.tables[table.name] = table
        self.fingerprints[table.name], self.premises[table.name] = fingerprint, premises


class Analyses:
    """For one plan. What is found out is kept by `save`."""

    def __init__(self, lake: OpenLake) -> None:
        self._lake = lake
        self._known = lake.plans.analysed()
        self._found: dict[str, str] = {}
        self._current: set[str] = set()
        conf = lake.spark.conf
        names = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")
        given = lake.settings.values.spark.conf
        self._session = {**given, **{name: str(conf.get(name)) for name in names}}

    def proposal(self, table: Kind, before: Upstream) -> Proposal:
        """What the definition means, found out or known; it is added to those before it.

        DefinitionError names what is wrong with it; NotFoundError or UsageError a topic that is not open, or
        whose files have changed.
        """
        topics = {name: self._topic(table, name) for name in upstream_topics(table, before.tables)}
        upstream = {
            name: hashed([before.premises[name], before.fingerprints[name]]) for name in table.reads
        }
        rests_on = premises(table, topics, before.tables, upstream, self._session)
        means = self._found.get(rests_on) or self._known.get(rests_on)
        if means is None:
            spark = self._lake.spark
            analyse(table, topics, spark, before.tables)
            means = fingerprint(table, topics, spark, before.tables, before.fingerprints)
        self._found[rests_on] = means
        before.add(table, means, rests_on)
        return Proposal(
            table=table.name,
            definition=table.to_json(),
            fingerprint=means,
            topics=tuple(topics),
            stores_rows=is_stored(table),
            reads=table.reads,
        )

    def settled(self, table: Kind, version: Version, before: Upstream) -> Proposal:
        """A table that stays as this version has it, whatever its contract or the engine is now."""
        before.add(table, version.fingerprint, hashed(version.definition))
        return Proposal(
            table=table.name, definition=table.to_json(), fingerprint=version.fingerprint, topics=(),
            stores_rows=is_stored(table), reads=table.reads,
        )  # fmt: skip

    def save(self) -> None:
        """For the next plan."""
        self._lake.plans.save_analysed(self._found)

    def _topic(self, table: Kind, name: str) -> Topic:
        log = self._lake.logs.get(name)
        if log is None:
            raise not_open(self._lake, table.name, name)
        if name not in self._current:
            _refuse_outdated(self._lake, log)
            self._current.add(name)
        return log.topic


def not_open(lake: OpenLake, table: str, topic: str) -> TwinlakeError:
    """Why the lake has no log of the topic. ContractError where its files are wrong now."""
    reads = f"table {table} reads topic {topic!r}"
    try:
        load_topic(topic, *lake.settings.sources)
    except NotFoundError:
        known = f"it has {', '.join(sorted(lake.logs))}"
        return NotFoundError(f"{reads}, which this lake has not", known, "add its files")
    return UsageError(
        f"{reads}, which is not open",
        "its files were added, or put right, since the lake server has read them (see `twinlake status`)",
        "run `twinlake reload`, then plan again",
    )


def _refuse_outdated(lake: OpenLake, log: Log) -> None:
    """Ingest judges by the contract it started with; planning against newer files would promise otherwise."""
    now = load_topic(log.topic.name, *lake.settings.sources)
    if (now.contract.fingerprint, now.newest) != (log.topic.contract.fingerprint, log.topic.newest):
        raise UsageError(
            f"the contract or schema of topic {log.topic.name} has changed",
            "the lake server still works with the files that it has read before",
            "run `twinlake reload`, then plan again",
        )
