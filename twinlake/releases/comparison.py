"""Comparison: what was found out about two versions of a table, as it is kept and shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from twinlake.base.as_json import to_json
from twinlake.releases.over_time import OverTime

SHOWN = 20
"""So many differing rows of each sort are kept as samples, those that differ most."""


@dataclass(frozen=True, kw_only=True)
class ComparedVersion:
    """Which version was compared, and the Delta version it was pinned at (none for a view kind)."""

    version: str
    delta_version: int | None


@dataclass(frozen=True, kw_only=True)
class ComparedColumn:
    """`changed` counts common rows where the two sides differ; totals only where a total means something."""

    name: str
    type: str
    changed: int
    blue_total: str | None = None
    green_total: str | None = None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One differing row; `columns` are the ones that differ (empty where a side is missing)."""

    kind: str  # changed | only_blue | only_green
    key: dict[str, Any]
    blue: dict[str, Any] | None
    green: dict[str, Any] | None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The result for one table; `common` counts the keys that both sides have."""

    table: str
    blue: ComparedVersion
    green: ComparedVersion
    position: dict[str, int]
    keys: tuple[str, ...]
    common: int
    changed: int
    only_blue: int
    only_green: int
    columns: tuple[ComparedColumn, ...] = ()
    columns_only_blue: tuple[str, ...] = ()
    columns_only_green: tuple[str, ...] = ()
    samples: tuple[Sample, ...] = ()
    over_time: OverTime | None = None
    no_time: str = ""
    """Why there is no `over_time`; nothing in a comparison of a Twinlake that did not look at time."""
    blue_raises: str | None = None
    """What raises when blue is read, a view kind: columns that do are NULL in it here."""

    @property
    def equal(self) -> bool:
        return not (
            self.blue_raises or self.changed or self.only_blue or self.only_green
            or self.columns_only_blue or self.columns_only_green
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        return {**to_json(asdict(self)), "equal": self.equal}
