"""What readers of the SQL server have now, and how a query sees all of it as one release has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What look-ups need to know of a table of the live release."""

    key: tuple[str, ...] = ()
    """The columns of its key; none of one that is damaged."""
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Followed:
    """What readers have now; `error` is why the newest release could not be followed (it is tried again)."""

    release: int | None = None
    ready: bool = False
    error: str | None = None
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By schema, `serve` and those of releases, the version of each table."""
    looked_up: Mapping[str, Looked] = field(default_factory=dict)
    """By table of `serve`."""

    def versions(self, named: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Table and version of each of these views (schema.name) that is one of a table."""
        for schema, _, name in (one.lower().partition(".") for one in named):
            for table, version in self.tables.get(schema, {}).items():
                if table.lower() == name:
                    yield table, version


_NONE = -1


class OneRelease:
    """The follower tells of its switches; a reader asks which release its statement has seen."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._java = jvm.twinlake.reading.OneRelease

    @contextmanager
    def switching(self, release: int) -> Iterator[None]:
        """Queries wait, or are analysed again, until the views are those of this release.

        A switch that fails half way is shown by `/status` and tried again; nobody waits so long.
        """
        self._java.alter()
        try:
            yield
            self._java.serve(release)
        finally:
            self._java.altered()

    def of_last_statement(self) -> int | None:
        """Of this thread's last statement; None before the first release."""
        found: int = self._java.ofLastStatement()
        return None if found == _NONE else found
