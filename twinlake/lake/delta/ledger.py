"""Ledger: a small append-only Delta table of facts (jobs, certificates) that the lake server alone writes.

Written with deltalake rather than Spark: an append takes about 10 ms and no executor. That is safe because
the lake's lock leaves one process, and the ledger's own lock one thread, that may write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, Schema, write_deltalake
from pyarrow.parquet import filters_to_expression

from twinlake.base.location import Location
from twinlake.lake.delta import data_file, delta
from twinlake.lake.delta.read_errors import damaged_file
from twinlake.lake.delta.table_state import TableState
from twinlake.lake.storage import store

COMPACT_ABOVE_FILES = 200
KEEP_FILES_HOURS = 24
"""Files that a compaction replaced stay so long, for whoever reads the ledger from outside."""
KEEP_COMMITS = "interval 2 days"
Row = dict[str, Any]


class Ledger:
    def __init__(self, path: Location, schema: pa.Schema) -> None:
        self.path = path
        self.schema = schema
        self._lock = threading.Lock()
        self._table: DeltaTable | None = None
        """As of its last append: opening it again lists and reads its commits, of a store one by one."""

    def append(self, rows: list[Row]) -> None:
        """Commit the rows together; on return they survive a kill. FullDiskError where there is no room."""
        with self._lock, store.telling_of_no_room(self.path):
            table, self._table = self._table or self._open(), None  # after a failure it is opened again
            write_deltalake(table, pa.Table.from_pylist(rows, self.schema), mode="append")
            self._table = table

    def rows(self, **of: str) -> list[Row]:
        """All rows, or those that have these values, in no particular order; empty when nothing was ever
        written, or a DamagedError."""
        if not delta.exists(self.path):
            return []
        table = _whole(self.path)
        try:
            wanted = [(name, "=", value) for name, value in of.items()]
            having = filters_to_expression(wanted) if wanted else None
            # **why** no threads: a process that ends soon after is aborted by those that read for this one
            found = table.to_pyarrow_dataset().to_table(filter=having, use_threads=False)
            rows: list[Row] = found.to_pylist()
            return rows
        except Exception:
            for name in TableState(self.path, appends=False).files:
                data_file.read(self.path / unquote(name))  # which of them it is
            raise

    def gain_columns(self) -> None:
        """Adds the columns of the schema that it lacks; its rows have NULL there."""
        with self._lock:
            if not delta.exists(self.path):
                return
            self._table, table = None, _whole(self.path)
            there = {one.name for one in table.schema().fields}
            if lacking := [one for one in self.schema if one.name not in there]:
                fields = Schema.from_arrow(pa.schema(lacking)).fields
                table.alter.add_columns(fields)

    def compact(self, keep: Callable[[list[Row]], list[Row]] = lambda rows: rows) -> bool:
        """Now and then one file of the rows to keep, in place of the many; those are deleted a day later."""
        with self._lock:
            if not delta.exists(self.path):
                return False
            self._table, table = None, _whole(self.path)
            if len(table.file_uris()) <= COMPACT_ABOVE_FILES:
                return False
            kept = pa.Table.from_pylist(keep(table.to_pyarrow_table().to_pylist()), self.schema)
            write_deltalake(table, kept, mode="overwrite")
            table = DeltaTable(str(self.path))
            table.create_checkpoint()
            table.vacuum(retention_hours=KEEP_FILES_HOURS, enforce_retention_duration=False, dry_run=False)
            table.cleanup_metadata()
            return True

    def _open(self) -> DeltaTable:
        if delta.exists(self.path):
            return _whole(self.path)
        store.make_folder(self.path)
        return DeltaTable.create(
            str(self.path),
            self.schema,
            mode="ignore",
            configuration={"delta.logRetentionDuration": KEEP_COMMITS},
        )


def _whole(path: Location) -> DeltaTable:
    """The table, none of its files torn: deltalake passes over a commit that was emptied."""
    delta.refuse_torn(path)
    if damage := damaged_file(path, TableState(path, appends=False)):
        raise damage
    return DeltaTable(str(path))
