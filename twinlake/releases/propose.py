"""Propose: the plan that makes definitions live, from what they mean now and what was rolled back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.job import Run
from twinlake.base.times import format_moment
from twinlake.kinds.all import from_json
from twinlake.kinds.dependencies import ordered
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Plan
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.rolled_back import RolledBack, rolled_back
from twinlake.lake.catalog.version import Version, stored_versions
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.analysed import Analyses, Upstream
from twinlake.releases.choose import (
    Chosen,
    choose,
    not_found,
    not_named,
    refuse_read,
    refuse_removal,
    refuse_unfound,
    refuse_unmet,
)
from twinlake.releases.history import Histories, measured_rate
from twinlake.releases.plan import RECORDS_PER_SECOND, Proposal, decide


def propose(
    lake: OpenLake,
    definitions: Mapping[str, Mapping[str, Any]],
    git_commit: str | None,
    run: Run,
    tables: Collection[str] | None = None,
    remove: Collection[str] = (),
) -> Plan:
    """The plan that makes these definitions live, stored, so that the next steps mean the same.

    `definitions` maps each table to its JSON. A live table that is not among them stays as it is, unless
    `remove` names it. `tables` limits the plan to some and what reads them; without them what was rolled back
    is left out. DefinitionError names what is wrong with a definition, such as that
    it reads a table that is not among them; NotFoundError a topic that the lake has not; UsageError a topic
    whose files were added or have changed since the server started.
    """
    written = {table.name: table for table in _named(definitions)}
    now = release_log.live(lake.path)
    live, lived = _live(lake, now)
    analyses = Analyses(lake)
    refuse_removal(remove, written, now.tables if now else ())
    stays = not_found(written, lived, remove)
    if tables is None:
        taken_back = _taken_back(lake, written, live, analyses)
        stays |= {name: why for name, why in taken_back.items() if name not in remove}
        chosen = choose(written, lived, stays)
    else:
        refuse_unfound(tables, stays)
        chosen = choose(written, lived, stays | not_named(written, lived, {*tables, *remove}))
        refuse_unmet(tables, chosen)
    refuse_read(chosen, lived)
    proposals = _proposals(lake, chosen, live, analyses, run)
    analyses.save()
    run.progress(1, 1, "tables", "reading how far history reaches")
    lake.damages.look(lake.tables())
    plan = decide(
        live=now,
        proposals=proposals,
        versions=lake.versions.usable(),
        lost=lost(lake),
        histories=Histories(lake),
        created_at=format_moment(lake.clock()),
        git_commit=git_commit,
        records_per_second=measured_rate(lake.runs) or RECORDS_PER_SECOND,
        stays=chosen.stays,
        remove=remove,
        changelogs={one["table"]: one["topic"] for one in lake.changelogs.status()},
        published=[one["table"] for one in lake.publications.status()],
    )
    lake.plans.save(plan)
    return plan


def _live(lake: OpenLake, live: Release | None) -> tuple[dict[str, Version], dict[str, Kind]]:
    """By table, the live versions whose definition can be read, and that."""
    wanted = set(live.tables.items()) if live else set()
    versions, definitions = dict[str, Version](), dict[str, Kind]()
    for version in lake.versions.living():
        if (version.table, version.name) in wanted:
            with suppress(TwinlakeError):  # one that is not understood any more is no choice
                definitions[version.table] = from_json(version.definition)
                versions[version.table] = version
    return versions, definitions


def _proposals(
    lake: OpenLake, chosen: Chosen, live: Mapping[str, Version], analyses: Analyses, run: Run
) -> list[Proposal]:
    """Each after those that it reads. A table that stays is not looked at again; only one whose live version
    can never go on, or reads one that changes, is."""
    usable = {(version.table, version.name) for version in lake.versions.usable()}
    proposals: list[Proposal] = []
    before, settled = Upstream(), set[str]()
    for number, table in enumerate(ordered(chosen.tables.values())):
        run.check_cancelled()
        run.progress(number, len(chosen.tables), "tables", f"analysing {table.name}")
        version = live.get(table.name) if table.name in chosen.stays else None
        goes_on = version is not None and (version.table, version.name) in usable
        if version is not None and goes_on and settled.issuperset(table.reads):
            settled.add(table.name)
            proposals.append(analyses.settled(table, version, before))
        else:
            proposals.append(analyses.proposal(table, before))
    return proposals


def _taken_back(
    lake: OpenLake, written: Mapping[str, Kind], live: Mapping[str, Version], analyses: Analyses
) -> dict[str, tuple[str, ...]]:
    """Of each table that would be again what a rollback took back, what is said of it."""
    found, backs = dict[str, tuple[str, ...]](), dict[str, list[RolledBack]]()
    for back in rolled_back(release_log.releases(lake.path)):
        backs.setdefault(back.table, []).append(back)
    if not backs:
        return found
    versions = {(one.table, one.name): one for one in stored_versions(lake.path)}
    before = Upstream()
    for table in ordered(written.values()):
        means = analyses.proposal(table, before).fingerprint
        blue = live.get(table.name)
        for back in (back for back in backs.get(table.name, ()) if back.version):
            version = versions.get((table.name, back.version or ""))
            if _is_again(version, back, means, table, blue):
                found[table.name] = back.lines()
    for back in (back for some in backs.values() for back in some):
        if back.version is None and back.table in live and back.table not in written:
            found[back.table] = back.lines()
    return found


def _is_again(
    version: Version | None,
    back: RolledBack,
    means: str,
    table: Kind,
    blue: Version | None,
) -> bool:
    """Whether a definition that means this is that of the version: by its meaning, or, where more than its
    contract, its upstream or the engine was new in it, by its text."""
    if version is None:  # its file is torn
        return (back.version or "").startswith(means[:12])
    same_text = _same_text(version.definition, table) and not (blue and _same_text(blue.definition, table))
    return same_text or version.fingerprint == means


def _same_text(stored: Mapping[str, Any], table: Kind) -> bool:
    """White space and comments around expressions, and the indentation of a whole query, count nothing: a
    definition that moves from Python to SQL is written without them."""
    if stored == table.to_json():
        return True
    from twinlake.kinds.sql_form.writing import KINDS, as_json, plain  # a parser, which few plans need

    if table.kind not in KINDS or stored.get("kind") != table.kind:
        return False
    with suppress(TwinlakeError):  # it is not understood any more
        return as_json(plain(from_json(stored))) == as_json(plain(table))
    return False


def lost(lake: OpenLake) -> dict[tuple[str, str], str]:
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
