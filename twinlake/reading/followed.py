"""Followed: what readers of the SQL server have now, as the follower has made it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Followed:
    """What readers have now; `error` is why the newest release could not be followed (it is tried again)."""

    release: int | None = None
    ready: bool = False
    error: str | None = None
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By schema, `serve` and those of releases, the version of each table."""

    def versions(self, named: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Table and version of each of these views (schema.name) that is one of a table."""
        for schema, _, name in (one.lower().partition(".") for one in named):
            for table, version in self.tables.get(schema, {}).items():
                if table.lower() == name:
                    yield table, version
