"""Live tables: what the views read by; `java/.../LiveTable` knows the files of their newest versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs import quote
from jobs.lake.table_state import TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FUNCTION = "twinlake_live"


class LiveTables:
    """Only tables that are open can be read; whoever opens them keeps them from falling behind."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._java = jvm.twinlake.reading.LiveTable
        self._open: set[Path] = set()

    def relation_sql(self, path: Path) -> str:
        """The table as a relation of a view's text; opened by it.

        ChangedTableError for a table that needs a reader with other features, FileNotFoundError for none.
        """
        self._open.add(path)
        self._follow(path)
        return f"{_FUNCTION}({quote.string(str(path))})"

    def follow(self) -> None:
        """Reads every open table forward: one that lags for hours finds its next commits cleaned up."""
        for path in self._open:
            self._follow(path)

    def close(self, path: Path) -> None:
        self._open.discard(path)
        self._java.close(str(path))

    def _follow(self, path: Path) -> None:
        if self._java.follow(str(path)):
            return
        state = TableState(path)
        added = (
            {"add": {"path": name, "size": file.bytes, "stats": file.stats}}
            for name, file in state.files.items()
        )
        actions = [{"metaData": state.metadata}, *added]
        self._java.begin(str(path), state.version, "\n".join(map(json.dumps, actions)))
