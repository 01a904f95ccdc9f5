"""Followed: what readers of the SQL server have now, as the follower has made it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from jobs.lake.stalled import Stalled


@dataclass(frozen=True, kw_only=True)
class Followed:
    """What readers have now; `error` is why the newest release could not be followed (it is tried again)."""

    release: int | None = None
    ready: bool = False
    error: str | None = None
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By schema, `serve` and those of releases, the version of each table."""
    stalled: Mapping[tuple[str, str], Stalled] = field(default_factory=dict)
    """By table and version, those that do not keep up with their logs."""

    def stalled_views(self, named: Iterable[str]) -> list[dict[str, Any]]:
        """What readers of these views (schema.name) should know: table, version, why, position."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for schema, _, name in (one.lower().partition(".") for one in named):
            for table, version in self.tables.get(schema, {}).items():
                if table.lower() == name and (told := self.stalled.get((table, version))):
                    found[(table, version)] = asdict(told)
        return [*found.values()]
