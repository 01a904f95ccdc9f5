"""Appends to a Delta table by put-if-absent: the small data file is written, then one commit file published
by a call that cannot overwrite. Spark's own commit costs half a second, this one half a millisecond.

Spark's Delta keeps what creates, alters and compacts, and large appends and merges; its commits are read
forward before each append. Any number of Appenders may append to a table: each sees what the others have
committed.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

import structlog

from twinlake.base.errors import BusyError, ChangedTableError, SilentSkipError
from twinlake.base.location import Location
from twinlake.lake.delta import checkpoints, data_file, delta
from twinlake.lake.delta.data_file import Column
from twinlake.lake.delta.delta import Commit
from twinlake.lake.delta.table_state import LiveFile, TableState
from twinlake.lake.storage import store

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

journal = structlog.get_logger(__name__)
Added = Mapping[str, Any]
"""Delta's `add` action for a data file that is written and not yet committed."""


class Appender:
    """`statistics` are the columns that prune: of every other one Delta's log says nothing."""

    def __init__(self, path: Location, statistics: Sequence[Column]) -> None:
        self.path = path
        self.on_commit: Callable[[float], None] = lambda seconds: None
        """Called after each commit with the seconds that it took."""
        self._statistics = statistics
        self._state = TableState(path)
        self._opened = self._state.metadata, self._state.protocol
        self._lock = threading.Lock()

    @property
    def table_id(self) -> str:
        return self._state.id

    def schema(self) -> StructType:
        """The table's columns."""
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads(self._state.metadata["schemaString"]))

    def transaction(self, app_id: str) -> int:
        """The last committed transaction of `app_id`, 0 where there is none."""
        with self._lock:
            self._forward()
            return self._state.transaction(app_id)

    def moment(self, app_id: str) -> tuple[int, int]:
        """The table's newest version, and the last committed transaction of `app_id` in it."""
        with self._lock:
            self._forward()
            return self._state.version, self._state.transaction(app_id)

    def files(self) -> dict[str, LiveFile]:
        """The live data files by path, as Delta's log writes it."""
        with self._lock:
            self._forward()
            return dict(self._state.files)

    def write(self, rows: pa.Table, partition: Mapping[str, str] = {}) -> list[Added]:
        """The rows as a data file that nobody sees before it is committed; none for no rows.

        `rows` have the table's columns without the partition's. FullDiskError where there is no room.
        """
        if not rows.num_rows:
            return []
        with store.telling_of_no_room(self.path):
            return [data_file.write(rows, self.path, partition, self._statistics)]

    def adopt(
        self, files: Iterable[Location], partition: Mapping[str, str] = {}, prefix: str = data_file.PART
    ) -> list[Added]:
        """The same for whole data files in the lake, written by somebody else: those stay."""
        with store.telling_of_no_room(self.path):
            return [data_file.adopt(file, self.path, partition, self._statistics, prefix) for file in files]

    def commit(
        self,
        added: Sequence[Added],
        app_id: str,
        txn_version: int,
        metadata: Mapping[str, Any],
        removed: Collection[str] = (),
        same: bool = True,
        marks: Mapping[str, int] = {},
        columns: StructType | None = None,
    ) -> Commit:
        """One commit of these files, once, instead of the live files `removed`, if there are such: they
        say the `same`, so that nobody sees a change, or other things.

        `marks` are transactions of other apps that tell readers something, of whatever number; `columns`
        those that the table has from now on, where they are others.
        SilentSkipError for a transaction that is not the last one + 1, ChangedTableError when somebody has
        altered the table since it was opened, BusyError when a file to be removed is live no more,
        FullDiskError where there is no room.
        """
        began = time.monotonic()
        with self._lock, store.telling_of_no_room(self.path):
            while True:
                self._forward()
                self._refuse(app_id, txn_version)
                self._refuse_gone(removed)
                known = {app_id: txn_version, **marks}
                actions = self._actions(added, removed, known, metadata, bool(removed) and same)
                if columns is not None:
                    schema = {"schemaString": columns.json()}
                    actions.insert(1, {"metaData": {**self._state.metadata, **schema}})
                version = self._state.version + 1
                if store.put_if_absent(delta.commit_file(self._state.folder, version), _lines(actions)):
                    break
            self._state.apply(actions)
            if columns is not None:
                self._opened = self._state.metadata, self._state.protocol
            self._sum_up(actions[0]["commitInfo"]["txnId"])
        self.on_commit(time.monotonic() - began)
        if checkpoints.due(version):
            checkpoints.make(self.path)
        return Commit(
            version=version, metadata=dict(metadata), transactions=known,
            added=tuple(unquote(file["path"]) for file in added),
        )  # fmt: skip

    def _refuse(self, app_id: str, txn_version: int) -> None:
        last = self._state.transaction(app_id)
        if txn_version != last + 1:
            raise SilentSkipError(
                what=f"transaction {txn_version} of {self.path} cannot be committed",
                why=f"the last one of {app_id!r} is {last}: a record would be lost, or counted twice",
                remedy="do not write to the lake by other means; restart the lake server, "
                "it reads the last transaction again",
            )

    def _refuse_gone(self, removed: Collection[str]) -> None:
        if gone := [path for path in removed if path not in self._state.files]:
            raise BusyError(
                f"files of {self.path} were replaced while they were merged",
                f"{len(gone)} of {len(removed)} are gone, such as {gone[0]}",
                "nothing: what is there now is merged the next time",
            )

    def _forward(self) -> None:
        self._state.forward()
        if self._opened != (self._state.metadata, self._state.protocol):
            raise ChangedTableError(
                f"the table {self.path} was altered while it was written",
                f"version {self._state.version}, or one just before, changes columns, properties or protocol",
                "nothing, if that was meant: it is opened again and tried again by itself",
            )

    def _actions(
        self,
        added: Sequence[Added],
        removed: Collection[str],
        transactions: Mapping[str, int],
        metadata: Mapping[str, Any],
        same: bool,
    ) -> list[dict[str, Any]]:
        now_ms = time.time_ns() // 1_000_000
        info = {
            "timestamp": now_ms,
            "operation": "OPTIMIZE" if same else "WRITE",
            "operationParameters": {} if same else {
                "mode": "Overwrite" if removed else "Append",
                "partitionBy": json.dumps(self._state.partition_by),
            },
            "readVersion": self._state.version,
            "isolationLevel": "SnapshotIsolation" if same else "Serializable",
            "isBlindAppend": not removed,
            "operationMetrics": {
                "numFiles": str(len(added)), "numOutputBytes": str(sum(file["size"] for file in added)),
            },
            "userMetadata": json.dumps(metadata, separators=(",", ":")),
            "engineInfo": delta.ENGINE,
            "txnId": str(uuid4()),
        }  # fmt: skip
        gone = ({"remove": self._removal(path, now_ms, same)} for path in removed)
        return [
            {"commitInfo": info},
            *_transactions(transactions, now_ms),
            *gone,
            *({"add": {**file, "dataChange": not same}} for file in added),
        ]

    def _removal(self, path: str, now_ms: int, same: bool) -> dict[str, Any]:
        partition = dict(part.split("=", 1) for part in path.split("/")[:-1])
        return {
            "path": path, "deletionTimestamp": now_ms, "dataChange": not same, "extendedFileMetadata": True,
            "partitionValues": partition, "size": self._state.files[path].bytes,
        }  # fmt: skip

    def _sum_up(self, commit_id: str) -> None:
        """Delta's checksum file of the newest version: it spares readers to look for what never changes."""
        state = self._state
        checksum = {
            "txnId": commit_id, "tableSizeBytes": state.bytes, "numFiles": len(state.files), "numMetadata": 1,
            "numProtocol": 1, "setTransactions": [*state.transactions.values()], "domainMetadata": [],
            "metadata": state.metadata, "protocol": state.protocol,
        }  # fmt: skip
        try:
            file = state.folder / f"{state.version:020d}.crc"
            text = json.dumps(checksum, separators=(",", ":"))
            if not store.put_if_absent(file, text):
                # of a commit that a backup lacks: Spark would go by its columns, which the table has not
                store.replace(file, text)
        except OSError as error:  # nobody needs it, and the commit is made
            journal.warning("no checksum file was written", table=str(self.path), why=str(error))


def begin(
    path: Location,
    columns: StructType,
    properties: Mapping[str, str],
    added: Sequence[Added],
    transactions: Mapping[str, int],
    metadata: Mapping[str, Any],
) -> None:
    """Makes a table whose first commit has these files: nobody sees it without them.

    BusyError where somebody has made one meanwhile, FullDiskError where there is no room.
    """
    now_ms = time.time_ns() // 1_000_000
    info = {
        "timestamp": now_ms, "operation": "CREATE TABLE AS SELECT", "operationParameters": {},
        "isolationLevel": "Serializable", "isBlindAppend": True,
        "operationMetrics": {
            "numFiles": str(len(added)), "numOutputBytes": str(sum(file["size"] for file in added)),
        },
        "userMetadata": json.dumps(metadata, separators=(",", ":")), "engineInfo": delta.ENGINE,
        "txnId": str(uuid4()),
    }  # fmt: skip
    table = {
        "id": str(uuid4()), "format": {"provider": "parquet", "options": {}}, "schemaString": columns.json(),
        "partitionColumns": [], "configuration": dict(properties), "createdTime": now_ms,
    }  # fmt: skip
    actions: list[dict[str, Any]] = [
        {"commitInfo": info},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": table},
        *_transactions(transactions, now_ms),
        *({"add": file} for file in added),
    ]
    folder = path / delta.LOG_FOLDER
    with store.telling_of_no_room(path):
        store.make_folder(folder)
        if not store.put_if_absent(delta.commit_file(folder, 0), _lines(actions)):
            raise BusyError(
                f"there is a table in {path} already", "somebody has made it in this moment",
                "nothing: what is there now is looked at by itself",
            )  # fmt: skip


def _transactions(numbers: Mapping[str, int], now_ms: int) -> list[dict[str, Any]]:
    return [
        {"txn": {"appId": app_id, "version": number, "lastUpdated": now_ms}}
        for app_id, number in numbers.items()
    ]


def _lines(actions: Sequence[Mapping[str, Any]]) -> str:
    """Characters as they are: deltalake reads some of them wrongly where they are written as surrogates."""
    return "".join(json.dumps(action, ensure_ascii=False, separators=(",", ":")) + "\n" for action in actions)
