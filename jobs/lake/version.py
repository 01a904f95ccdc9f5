"""Version: one build of one definition, its place in the lake and the JSON stored beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

State = Literal["living", "retired"]


@dataclass(frozen=True, kw_only=True)
class Version:
    """`definition` is the stored JSON; an old version stays fed after its file in `jobs/tables` has
    changed."""

    table: str
    fingerprint: str
    build: int
    definition: dict[str, Any]
    topic: str
    contract: str
    created_at: str
    git_commit: str | None = None
    state: State = "living"

    @property
    def name(self) -> str:
        return f"{self.fingerprint[:12]}-{self.build}"

    def path(self, lake: Path) -> Path:
        return lake / "tables" / self.table / self.name

    def file(self, lake: Path) -> Path:
        return lake / "tables" / self.table / f"{self.name}.json"

    def save(self, lake: Path) -> None:
        """Written beside and renamed, so that a reader or a crash never sees half a file."""
        file = self.file(lake)
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(".json.new")
        with beside.open("w") as out:
            json.dump({"version": self.name, **asdict(self)}, out, indent=2, sort_keys=True)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)

    def retired(self) -> Version:
        return replace(self, state="retired")


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A version at one moment, as its owner saw it: what certificates, diffs and gates compare.

    `delta_version` belongs to the version's own Delta table, or to the topic's log when the table is Events.
    """

    version: Version
    delta_version: int
    position: dict[str, int]
    watermark: int | None
    step: int
    segment: int


@dataclass(frozen=True, kw_only=True)
class Health:
    """What `twinlake status` shows of a version; answered from memory."""

    table: str
    version: str
    topic: str
    position: int
    lag_records: int
    lag_seconds: float
    step: int
    segment: int
    stalled: bool = False
    error: dict[str, str] | None = None
    watermark: int | None = None


def load(file: Path) -> Version:
    stored = json.loads(file.read_text())
    stored.pop("version")
    return Version(**stored)


def stored_versions(lake: Path) -> Iterator[Version]:
    """Every version of the lake, living and retired, in order of table and build."""
    found = [load(file) for file in sorted((lake / "tables").glob("*/*.json"))]
    yield from sorted(found, key=lambda version: (version.table, version.build, version.name))


def next_build(lake: Path, table: str) -> int:
    """Builds count up per table, so that a directory is never used twice."""
    return 1 + max((version.build for version in stored_versions(lake) if version.table == table), default=0)
