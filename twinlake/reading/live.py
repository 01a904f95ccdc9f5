"""Live tables: what the views read by; `java/.../LiveTable` knows the files of their newest versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.base.errors import ChangedTableError, DamagedError, TwinlakeError
from twinlake.base.location import Location
from twinlake.lake.delta import delta
from twinlake.lake.delta.read_errors import damage_in
from twinlake.lake.delta.table_state import TableState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class LiveTables:
    """Only tables that are open can be read; whoever opens them keeps them from falling behind."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._java = jvm.twinlake.reading.LiveTable
        self._look_ups = jvm.twinlake.reading.LookUps
        self._java.register(spark._jsparkSession)
        self._open: set[Location] = set()

    def relation_sql(self, path: Location) -> str:
        """The table as a relation of a view's text; opened by it.

        ChangedTableError for a table that needs a reader with other features, DamagedError for one that
        is torn, FileNotFoundError for none.
        """
        self._follow(path)
        self._open.add(path)
        return f"{self._java.FUNCTION}({quote.string(str(path))})"

    def damaged_sql(self, error: DamagedError) -> str:
        """A relation of a view's text: whoever reads it gets an error with damage and remedy."""
        name = f"damaged:{error.facts['file']}"
        self._java.damage(name, *(error.facts[fact] for fact in ("file", "found", "expected")))
        return f"{self._java.FUNCTION}({quote.string(name)})"

    def follow(self) -> None:
        """Reads every open table forward: one that lags for hours finds its next commits cleaned up.

        ChangedTableError or DamagedError of the first that cannot be read any more, after all the others.
        """
        failed: TwinlakeError | None = None
        for path in sorted(self._open, key=str):
            try:
                self._follow(path)
            except FileNotFoundError:  # nothing names it any more, or whoever does gets the error
                self.close(path)
            except (ChangedTableError, DamagedError) as error:
                failed = failed or error
        if failed:
            raise failed

    def set_clocks(self, view: str, values: Mapping[str, int | None]) -> None:
        """What a view of watermarks says from now on, for plans that are kept."""
        self._look_ups.clocks(view, json.dumps(values))

    def close(self, path: Location) -> None:
        self._open.discard(path)
        self._java.close(str(path))

    def _follow(self, path: Location) -> None:
        try:
            if self._java.follow(str(path)):
                return
        except Exception as error:
            if damage := damage_in(error, path):
                raise damage from error
            raise
        state = TableState(path, appends=False)
        self._java.begin(str(path), state.version, f"{position(state)}\n{actions(state)}")


def position(state: TableState) -> str:
    """How far the table had come by then, as the commit says it that has brought it there."""
    at, is_log = state.version, str(state.path).split("/")[-2:-1] == ["logs"]
    while (found := delta.commit(state.path, at)) is not None:
        if ("batch" if is_log else "watermark") in found.metadata:
            return json.dumps({"commitInfo": {"userMetadata": json.dumps(found.metadata)}})
        at -= 1
    return ""


def actions(state: TableState) -> str:
    """What a table holds, as Java takes it: like a commit's file that has made all of it."""
    added = (
        {"add": {"path": name, "size": file.bytes, "stats": file.stats}} for name, file in state.files.items()
    )
    return "\n".join(map(json.dumps, [{"metaData": state.metadata}, *added]))
