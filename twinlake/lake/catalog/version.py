"""Version: one build of one definition, its place in the lake and the JSON stored beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from twinlake.base.errors import DamagedError, NotFoundError
from twinlake.base.location import Location
from twinlake.definitions.fingerprint import FORMULA
from twinlake.lake.storage import store
from twinlake.topics.earlier import MadeWith

_FILE = re.compile(r".+-\d+\.json")
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
    schemas: dict[str, MadeWith] = field(default_factory=dict)
    """By topic, the schema that it was made with: it reads the log by that for ever."""
    formula: int = FORMULA
    """By which formula its fingerprint was made out (`kinds/fingerprint.py`)."""
    first_name: str | None = None
    """Of a version whose fingerprint was made out again: what it was called before, and is for ever."""

    @property
    def state(self) -> State:
        return "retired" if self.retired_at else "living"

    @property
    def name(self) -> str:
        return self.first_name or f"{self.fingerprint[:12]}-{self.build}"

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


Find = Callable[[str, str], Version]
"""The living version of a table by name; NotFoundError."""


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
    lost: bool = False
    """It is stalled for good: it counts as absent for a plan, which builds it again. `error` says why."""
    error: dict[str, str] | None = None
    paused: dict[str, Any] | None = None
    """It, or what it reads, stands still because somebody said so: it counts as stalled."""


def pin_json(pin: Pin) -> dict[str, Any]:
    """A pin as plain data; its versions by name."""
    return {
        **vars(pin), "version": pin.version.name,
        "reads": {table: pin_json(read) for table, read in pin.reads.items()},
    }  # fmt: skip


def pin_of(table: str, data: Mapping[str, Any], find: Find) -> Pin | None:
    """The pin that `pin_json` gave; None where one of its versions is no longer living."""
    try:
        return _pin(table, data, find)
    except NotFoundError:
        return None


def _pin(table: str, data: Mapping[str, Any], find: Find) -> Pin:
    reads = {name: _pin(name, read, find) for name, read in data["reads"].items()}
    return Pin(**{**data, "version": find(table, data["version"]), "reads": reads})


def version_file(lake: Location, table: str, name: str) -> Location:
    return lake / "tables" / table / f"{name}.json"


def load(file: Location) -> Version:
    """DamagedError for a file that holds no version."""
    return store.read_as(file, Version, {"formula": 1})


def unknown(table: str, name: str) -> Version:
    """What the name alone tells of a version, where nobody knows more."""
    fingerprint, _, build = name.rpartition("-")
    return Version(
        table=table, fingerprint=fingerprint, build=int(build), definition={}, topics=(), contracts={},
        created_at="",
    )  # fmt: skip


def stored_versions(lake: Location) -> Iterator[Version]:
    """Every version of the lake that can be read, living and retired, in order of table and build."""
    found, _ = read_versions(lake)
    yield from sorted(found, key=lambda version: (version.table, version.build, version.name))


def versions_of(lake: Location, table: str) -> list[Version]:
    """Those of one table that can be read, in order of build; none where there is no such table."""
    found = []
    for name in _names(lake, table):
        with suppress(DamagedError):
            found.append(load(version_file(lake, table, name)))
    return sorted(found, key=lambda version: (version.build, version.name))


def read_versions(lake: Location) -> tuple[list[Version], list[DamagedError]]:
    """Those that can be read, and what is said of each whose file is torn: nobody knows what it was."""
    found, torn = list[Version](), list[DamagedError]()
    for table in store.names(lake / "tables"):
        for name in _names(lake, table):
            try:
                found.append(load(version_file(lake, table, name)))
            except DamagedError as error:
                torn.append(error)
    return found, torn


def next_build(lake: Location, table: str) -> int:
    """Builds count up per table, so that a directory is never used twice, not even after one that is torn."""
    return 1 + max((int(name.rpartition("-")[2]) for name in _names(lake, table)), default=0)


def _names(lake: Location, table: str) -> list[str]:
    """Of all versions of a table."""
    files = store.names(lake / "tables" / table)
    return [name.removesuffix(".json") for name in files if _FILE.fullmatch(name)]
