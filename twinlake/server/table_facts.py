"""Table facts: what the lake server knows of one table; no Spark, and no row of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import DamagedError, NotFoundError, TwinlakeError
from twinlake.kinds.all import from_json
from twinlake.kinds.kind import grid_of, is_stored
from twinlake.lake.catalog.release_log import Release, releases
from twinlake.lake.catalog.version import Version, load, version_file, versions_of
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.timeline import changes_of
from twinlake.topics.contract import Contract
from twinlake.topics.contract_file import load_contract
from twinlake.topics.contract_words import contract_words
from twinlake.topics.topic import contract_file

if TYPE_CHECKING:
    from twinlake.lineage.columns import Made, Source

CERTIFICATES, RELEASES = 20, 20


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """`purpose`, `row` and what columns mean are the contract's words as the project has them now; all else
    is of the live version, or of the newest one where none is live."""

    name: str
    live: str | None
    purpose: str
    row: str
    kind: str
    keys: tuple[str, ...]
    stored: bool
    windows: bool
    late: bool
    """Whether readers have a view of what came late."""
    topics: tuple[str, ...]
    reads: tuple[str, ...]
    read_by: tuple[str, ...]
    columns: list[dict[str, Any]]
    decided_by: list[dict[str, str]]
    """What decides which rows there are."""
    definition: dict[str, Any]
    versions: list[dict[str, Any]]
    certificates: list[dict[str, Any]]
    releases: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def table_facts(lake: OpenLake, name: str) -> TableFacts:
    """NotFoundError for what is no table; the newest of certificates and releases come first."""
    history = releases(lake.path)
    live = history[-1].tables.get(name) if history else None
    versions = versions_of(lake.path, name) if _is_name(name) else []
    if not versions:
        known = ", ".join(sorted({one.table for one in lake.versions.living()})) or "none yet"
        raise NotFoundError(f"there is no table {name!r}", f"tables: {known}", "check the name")
    version = next((one for one in versions if one.name == live), versions[-1])
    kind, file = from_json(version.definition), contract_file(name, *lake.settings.sources)
    words, lives = contract_words(file), dict(live_versions(lake, history[-1] if history else None))
    made, used = lineage(lake, name, lives.values(), version)
    contract = _contract(lake, name)
    return TableFacts(
        name=name, live=live, purpose=words.purpose, row=words.row, kind=kind.kind, keys=kind.view_keys,
        stored=is_stored(kind), windows=grid_of(kind) is not None, late=kind.late("records") is not None,
        topics=version.topics, reads=kind.reads,
        read_by=tuple(table for table, one in lives.items() if name in one.reads),
        columns=[
            {
                "name": column, "meaning": words.columns.get(column, ""), "key": column in kind.view_keys,
                "type": _type(contract, column),
                "made_of": _sources(made.columns.get(column, ())),
                "used_by": _sources(used.get(column, ())),
            }
            for column in kind.output
        ],
        decided_by=_sources(made.rows), definition=version.definition,
        versions=[_version(one, history) for one in reversed(versions)],
        certificates=[one.summary() for one in lake.certificates.of(name, CERTIFICATES)],
        releases=[one.to_json() for one in changes_of(lake, name, RELEASES)],
    )  # fmt: skip


def lineage(
    lake: OpenLake, name: str, lives: Iterable[Version], version: Version | None = None
) -> tuple[Made, dict[str, tuple[Source, ...]]]:
    """What the columns of a version are made of, and by column of this topic or table, what is made of it."""
    from twinlake.lineage import of_version  # it parses SQL, which a server seldom needs itself

    topics = lake.topics.active()
    made = of_version.as_known(lake.path, version, topics) if version else of_version.UNKNOWN
    return made, of_version.used_by(name, lives, lake.path, topics)


def live_versions(lake: OpenLake, live: Release | None) -> Iterator[tuple[str, Version]]:
    """By table, the versions of a release, as far as they can be read."""
    for table, name in (live.tables if live else {}).items():
        try:
            yield table, load(version_file(lake.path, table, name))
        except (DamagedError, FileNotFoundError):  # status says so
            continue


def _contract(lake: OpenLake, name: str) -> Contract | None:
    try:
        return load_contract(contract_file(name, *lake.settings.sources))
    except TwinlakeError:
        return None


def _type(contract: Contract | None, column: str) -> str:
    found = contract.column(column) if contract else None
    return found.type if found else ""


def _version(version: Version, history: list[Release]) -> dict[str, Any]:
    return {
        "name": version.name, "state": version.state, "created_at": version.created_at,
        "git_commit": version.git_commit, "retired_at": version.retired_at, "reads": version.reads,
        "contracts": version.contracts,
        "releases": [one.number for one in history if one.tables.get(version.table) == version.name],
    }  # fmt: skip


def _sources(found: tuple[Source, ...]) -> list[dict[str, str]]:
    return [{"owner": one.owner, "column": one.column} for one in found]


def _is_name(name: str) -> bool:
    """Of what may be a folder's name, and none above it."""
    return name.isidentifier()

