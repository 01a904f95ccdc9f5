"""Drafted: a table as its definition and those upstream are written now, before a version is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinlake.base.errors import NotFoundError, UsageError
from twinlake.base.job import Run
from twinlake.base.times import format_moment
from twinlake.kinds.all import from_json
from twinlake.kinds.dependencies import ordered, upstream_topics
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Change, Plan
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Find, Version
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.analysed import Analyses, Upstream
from twinlake.releases.history import Histories, measured_rate
from twinlake.releases.plan import RECORDS_PER_SECOND, Proposal, decide
from twinlake.releases.propose import lost
from twinlake.releases.sampled import CHANGED, Against, Cost
from twinlake.topics.earlier import made_with

Definitions = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Draft:
    """`blue` is the live version of the table. `versions` has one for the table and for each upstream of it:
    the live one of a table that stays as it is, else one that nobody has built. `plan` says what would
    change; it is not stored."""

    table: str
    release: int
    blue: Version
    versions: Mapping[str, Version]
    plan: Plan

    @property
    def green(self) -> Version:
        return self.versions[self.table]

    @property
    def against(self) -> Against:
        return Against(version=self.blue.name, release=self.release)

    def finding(self, others: Find) -> Find:
        """Of those that nobody has built their versions here, of all others those that there are."""

        def find(table: str, name: str) -> Version:
            return self.versions[table] if name == CHANGED else others(table, name)

        return find

    @property
    def why(self) -> tuple[str, ...]:
        """What differs, of the table and then of each one upstream; nothing where nothing does."""
        mine = next(one for one in self.plan.changes if one.table == self.table)
        others = (one for one in self.plan.switched if one.table != self.table)
        lines = (f"{one.table}: {line}" for one in others for line in one.why)
        return (*mine.why, *lines) if mine in self.plan.switched else ()

    @property
    def cost(self) -> Cost:
        """Of the table and of what is to be built upstream of it."""
        builds = [one for one in self.plan.switched if one.builds]
        late = [one for one in self.plan.switched if not one.reaches_back]
        said = (one.history for one in late or self.plan.switched if one.history)
        return Cost(
            builds=bool(builds),
            records=sum(one.records for one in builds),
            bytes=sum(one.bytes for one in builds),
            minutes_estimate=round(sum(one.minutes_estimate for one in builds), 2),
            reaches_back=not late,
            history="; ".join(dict.fromkeys(said)),
        )


def drafted(lake: OpenLake, table: str, definitions: Definitions, run: Run) -> Draft:
    """What these definitions make of the table, against the live release. Only those are looked at that it
    reads; a live table that is not among them stays as it is.

    NotFoundError for a table that is not live; DefinitionError names what is wrong with a definition,
    NotFoundError or UsageError a topic as `propose` does.
    """
    release = release_log.live(lake.path)
    if release is None or table not in release.tables:
        raise NotFoundError(
            f"table {table} has no live version to compare with", "it is new, or its name is another one",
            "see what it would show with `twinlake dev`, or name a live table",
        )  # fmt: skip
    if table not in definitions:
        raise UsageError(
            f"table {table} has no definition to judge", "none was found in the project's files",
            "see `twinlake check`",
        )  # fmt: skip
    live = dict[str, Version]()
    tables = ordered(_upstream(lake, release, table, definitions, live))
    analyses, before, stays = Analyses(lake), Upstream(), set[str]()
    proposals = list[Proposal]()
    for one in tables:
        run.check_cancelled()
        run.say(f"analysing {one.name}")
        if one.name not in definitions and stays.issuperset(one.reads):
            stays.add(one.name)
            proposals.append(analyses.settled(one, live[one.name], before))
        else:
            proposals.append(analyses.proposal(one, before))
    run.check_cancelled()
    run.say("reading how far history reaches")
    plan = decide(
        live=release, proposals=proposals, versions=lake.versions.usable(), lost=lost(lake),
        histories=Histories(lake), created_at=format_moment(lake.clock()),
        records_per_second=measured_rate(lake.runs) or RECORDS_PER_SECOND,
    )  # fmt: skip
    versions = dict[str, Version]()
    for one, change in zip(tables, plan.changes, strict=False):
        is_live = change.action == "unchanged"
        versions[one.name] = live[one.name] if is_live else _unbuilt(lake, one, change, tables, versions)
    return Draft(table=table, release=release.number, blue=live[table], versions=versions, plan=plan)


def _upstream(
    lake: OpenLake, release: Release, table: str, definitions: Definitions, live: dict[str, Version]
) -> Iterator[Kind]:
    """The definition of the table and of every one that it reads, as far as there are some; `live` gets the
    live versions of these."""
    asked, known = [table], set[str]()
    while asked:
        name = asked.pop()
        if name in known:
            continue
        known.add(name)
        if name in release.tables:
            live[name] = lake.versions.get(name, release.tables[name])
        written = definitions.get(name) or (live[name].definition if name in live else None)
        if written is not None:
            yield (found := from_json(written))
            asked += found.reads


def _unbuilt(
    lake: OpenLake, table: Kind, change: Change, tables: Sequence[Kind], versions: Mapping[str, Version]
) -> Version:
    topics = upstream_topics(table, {one.name: one for one in tables})
    return Version(
        table=table.name, fingerprint=change.fingerprint or "", build=0, definition=table.to_json(),
        topics=topics, contracts={topic: lake.logs[topic].topic.contract.version for topic in topics},
        created_at=format_moment(lake.clock()), first_name=CHANGED,
        reads={name: versions[name].name for name in table.reads},
        schemas={topic: made_with(lake.logs[topic].topic) for topic in topics},
    )  # fmt: skip
