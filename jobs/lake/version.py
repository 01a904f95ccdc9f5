"""Version: one build of one definition, its place in the lake and the JSON stored beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from jobs.lake import store
from jobs.location import Location

State = Literal["living", "retired"]


@dataclass(frozen=True, kw_only=True)
class Version:
    """`definition` is the stored JSON: an old version stays fed after its file in jobs/tables has changed."""

    table: str
    fingerprint: str
    build: int
    definition: dict[str, Any]
    topics: tuple[str, ...]
    """All that decide what it shows: those that it reads, and those of the versions that it reads."""
    contracts: dict[str, str]
    """The contract's version of each topic at the build."""
    created_at: str
    git_commit: str | None = None
    retired_at: str | None = None
    reads: dict[str, str] = field(default_factory=dict)
    """By table, the name of the version that it reads: for ever the same one."""

    @property
    def state(self) -> State:
        return "retired" if self.retired_at else "living"

    @property
    def name(self) -> str:
        return f"{self.fingerprint[:12]}-{self.build}"

    def __str__(self) -> str:
        return f"{self.table} {self.name}"

    def path(self, lake: Location) -> Location:
        """Where the rows of a stored kind are."""
        return lake / "tables" / self.table / self.name

    def save(self, lake: Location) -> None:
        content = {"version": self.name, **asdict(self)}
        store.replace(
            version_file(lake, self.table, self.name), json.dumps(content, indent=2, sort_keys=True)
        )

    def retired(self, at: str) -> Version:
        return replace(self, retired_at=at)


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A version at one moment: what certificates, diffs and gates compare.

    `delta_version`, `step` and `segment` are of the version's own Delta table; a view kind has none: it is
    where its logs are, and where the versions are that it reads.
    """

    version: Version
    position: dict[str, int]
    watermarks: dict[str, int | None] = field(default_factory=dict)
    """By topic, in microseconds."""
    clocks: dict[str, dict[str, int | None]] = field(default_factory=dict)
    """By topic, how far the log's own clocks (`kinds/clock.py`) have come."""
    delta_version: int | None = None
    step: int | None = None
    segment: int | None = None
    reads: dict[str, Pin] = field(default_factory=dict)
    """By table, the pins of what it reads: all at one position."""


@dataclass(frozen=True, kw_only=True)
class Health:
    """What `twinlake status` shows of a version; answered from memory. A view kind has no lag and no step."""

    table: str
    version: str
    position: dict[str, int]
    watermark: int | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None
    step: int | None = None
    segment: int | None = None
    stalled: bool = False
    error: dict[str, str] | None = None


def batches_text(position: Mapping[str, int]) -> str:
    """A position for a person."""
    return ", ".join(f"{topic} batch {batch}" for topic, batch in position.items())


def version_file(lake: Location, table: str, name: str) -> Location:
    return lake / "tables" / table / f"{name}.json"


def load(file: Location) -> Version:
    stored = json.loads(store.read_text(file))
    stored.pop("version")
    return Version(**{**stored, "topics": tuple(stored["topics"])})


def stored_versions(lake: Location) -> Iterator[Version]:
    """Every version of the lake, living and retired, in order of table and build."""
    tables = lake / "tables"
    found = [
        load(tables / table / name)
        for table in store.names(tables)
        for name in store.names(tables / table)
        if name.endswith(".json")
    ]
    yield from sorted(found, key=lambda version: (version.table, version.build, version.name))


def next_build(lake: Location, table: str) -> int:
    """Builds count up per table, so that a directory is never used twice."""
    return 1 + max((version.build for version in stored_versions(lake) if version.table == table), default=0)
