"""What rollbacks have taken back: no plan brings it live again by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twinlake.lake.catalog.release_log import Release


@dataclass(frozen=True, kw_only=True)
class RolledBack:
    """`version` was live until this release took it back; None: the table was not there before it."""

    table: str
    version: str | None
    release: int
    reason: str | None = None

    def lines(self) -> tuple[str, str]:
        """What a person reads of it after the table's name, and how it would be released again."""
        what, change = ("was", "change its definition, or ") if self.version else ("its removal was", "")
        reason = f": {self.reason}" if self.reason else ""
        return (
            f"{what} rolled back in release {self.release}{reason}",
            f"to release it again: {change}name it, `twinlake plan --table {self.table}`",
        )


def rolled_back(history: Iterable[Release]) -> list[RolledBack]:
    """What no later release has made live again, each by its newest rollback; `history` is oldest first."""
    found: dict[tuple[str, str | None], RolledBack] = {}
    before: dict[str, str] = {}
    for release in history:
        tables = release.tables
        if release.restores is not None:
            for table in before.keys() | tables.keys():
                if (version := before.get(table)) != tables.get(table):
                    found[table, version] = RolledBack(
                        table=table, version=version, release=release.number, reason=release.reason
                    )
        found = {key: one for key, one in found.items() if tables.get(one.table) != one.version}
        before = tables
    return list(found.values())
