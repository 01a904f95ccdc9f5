"""What a Delta table holds at its newest version, read from `_delta_log` without Spark and kept up to date.

Its checkpoint is read once, then one small file for every commit that somebody makes. Columns and protocol
must be such that plain appends are right; anything else is refused rather than guessed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from twinlake.base.errors import ChangedTableError
from twinlake.base.location import Location
from twinlake.lake.delta import checkpoint_files, delta
from twinlake.lake.delta.data_file import UNDECODABLE
from twinlake.lake.storage import store

WRITER_FEATURES = frozenset({"appendOnly", "invariants"})
"""Features of the protocol that ask nothing of an append to a table without invariants."""
_INVARIANT = "delta.invariants"


class LiveFile(NamedTuple):
    bytes: int
    stats: str | None
    """Delta's statistics, as JSON."""

    @property
    def records(self) -> int | None:
        """How many rows it has; None where the statistics do not tell."""
        found: int | None = json.loads(self.stats or "{}").get("numRecords")
        return found

    def least(self, column: str) -> Any:
        """No value of the column is below it; None where the statistics do not tell."""
        return self._statistic("minValues", column)

    def greatest(self, column: str) -> Any:
        """No value of the column is above it; None where the statistics do not tell."""
        return self._statistic("maxValues", column)

    def may_lack(self, column: str) -> bool:
        """Whether rows may have no value of the column, by what the statistics tell."""
        return bool(self._statistic("nullCount", column) != 0)

    def _statistic(self, statistic: str, column: str) -> Any:
        return json.loads(self.stats or "{}").get(statistic, {}).get(column)


class TableState:
    """`files` are the live data files by path, as Delta's log writes it, `bytes` the sum of their sizes;
    `transactions` (by appId), `metadata` and `protocol` the newest actions of these names."""

    version: int
    transactions: dict[str, dict[str, Any]]
    files: dict[str, LiveFile]
    bytes: int
    protocol: dict[str, Any]
    metadata: dict[str, Any]

    def __init__(self, path: Location, *, appends: bool = True, at: int | None = None) -> None:
        """Reads the newest checkpoint and the commits since, those up to version `at` where one is given,
        which must be kept. ChangedTableError for a table that needs a
        reader with other features or, for whoever `appends`, such a writer; FileNotFoundError where there
        is not a table."""
        self.path = path
        self.folder = path / delta.LOG_FOLDER
        self._last = at
        self._begin()
        self.forward()
        if not self.metadata:
            raise FileNotFoundError(f"{path} is no Delta table")
        if foreign := self._readers_features() | (self._writers_features() if appends else set()):
            raise ChangedTableError(
                f"the table {self.path} cannot be {'appended to' if appends else 'read'}",
                f"somebody has changed it: it needs {', '.join(sorted(foreign))}",
                "rebuild the table (`twinlake plan`, `twinlake build`), and let nobody else alter it",
            )

    @property
    def id(self) -> str:
        """The id that Delta gave the table when it was created."""
        return str(self.metadata["id"])

    @property
    def partition_by(self) -> tuple[str, ...]:
        return tuple(self.metadata["partitionColumns"])

    def transaction(self, app_id: str) -> int:
        """The last committed transaction of `app_id`, 0 where there is none."""
        found = self.transactions.get(app_id)
        return int(found["version"]) if found else 0

    def forward(self) -> None:
        """Takes in the commits that were made since, by whomever."""
        begun_anew = False
        while self.version < (delta.newest_version(self.path) if self._last is None else self._last):
            if (actions := delta.actions(self.folder, self.version + 1)) is not None:
                self.apply(actions)
            elif not begun_anew:  # cleaned up behind a newer checkpoint
                self._begin()
                begun_anew = True
            else:
                raise delta.gone(self.folder, self.version + 1)

    def apply(self, actions: list[dict[str, Any]]) -> None:
        """One more commit."""
        for action in actions:
            self._take(action)
        self.version += 1

    def _take(self, action: Mapping[str, Any]) -> None:
        for kind, body in action.items():
            if body is None:
                continue
            if kind == "add":
                self._drop(body["path"])
                self.bytes += body["size"]
                self.files[body["path"]] = LiveFile(body["size"], body.get("stats"))
            elif kind == "remove":
                self._drop(body["path"])
            elif kind == "txn":
                self.transactions[body["appId"]] = dict(body)
            elif kind == "metaData":
                self.metadata = _given(body)
            elif kind == "protocol":
                self.protocol = _given(body)

    def _drop(self, path: str) -> None:
        if gone := self.files.pop(path, None):
            self.bytes -= gone.bytes

    def _begin(self) -> None:
        """From the newest checkpoint that is whole, whoever made it."""
        self._forget()
        for found in whole_checkpoints(self.folder):
            if self._last is None or found.version <= self._last:
                try:
                    self._take_checkpoint(found)
                except (*UNDECODABLE, ValueError, KeyError, TypeError) as error:
                    # its footer is whole, and what it names is not
                    checkpoint_files.put_aside(found.file, error)
                    self._forget()
                else:
                    break

    def _forget(self) -> None:
        self.version = -1
        self.bytes = 0
        self.transactions, self.files, self.protocol, self.metadata = {}, {}, {}, {}

    def _take_checkpoint(self, found: Checkpoint) -> None:
        file = pq.ParquetFile(pa.BufferReader(found.content), page_checksum_verification=True)
        wanted = ["txn", "metaData", "protocol", "add.path", "add.size", "add.stats"]
        for group in file.iter_batches(
            columns=[name for name in wanted if name.split(".")[0] in _names(file)]
        ):
            for action in group.to_pylist():
                self._take(action)
        self.metadata["configuration"] = dict(self.metadata.get("configuration") or {})
        self.metadata["format"] = {**self.metadata["format"], "options": {}}
        self.version = found.version

    def _readers_features(self) -> set[str]:
        features = self.protocol.get("readerFeatures")
        version = self.protocol.get("minReaderVersion", 0)
        return {f"reader version {version}"} if version > 1 and features is None else set(features or ())

    def _writers_features(self) -> set[str]:
        version = self.protocol.get("minWriterVersion", 0)
        foreign = set(self.protocol.get("writerFeatures") or ()) - WRITER_FEATURES
        if version > 2 and self.protocol.get("writerFeatures") is None:
            foreign.add(f"writer version {version}")
        if _INVARIANT in self.metadata["schemaString"]:
            foreign.add("invariants on columns")
        return foreign


class Checkpoint(NamedTuple):
    version: int
    file: Location
    content: bytes


def whole_checkpoints(folder: Location) -> Iterator[Checkpoint]:
    """The checkpoints in a `_delta_log` folder, the newest first, each read when its turn comes.
    One that was torn by whatever is put aside, because Spark and deltalake would fail on it."""
    for name in sorted(store.names(folder), reverse=True):
        if named := checkpoint_files.NAME.fullmatch(name):
            file = folder / name
            try:
                content = store.read(file)  # an error of the store says nothing of the file
            except FileNotFoundError:  # cleaned up in this moment
                continue
            if wrong := checkpoint_files.problem(file, content):
                checkpoint_files.put_aside(file, wrong)
            else:
                yield Checkpoint(int(named[1]), file, content)


def _given(body: Mapping[str, Any]) -> dict[str, Any]:
    """Without what a writer has written as null; others leave it out."""
    return {name: value for name, value in body.items() if value is not None}


def _names(file: pq.ParquetFile) -> set[str]:
    return set(file.schema_arrow.names)
