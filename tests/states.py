"""A lake's files as the plain states that the invariants are asked of (`twinlake/lake/invariants.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from deltalake import DeltaTable

from twinlake.lake.catalog.release_log import Release
from twinlake.lake.delta import delta
from twinlake.lake.invariants import Evidence, LogState, Place, ReleaseState, VersionState
from twinlake.topics.verdict import REPLAYED, VERDICTS


def log_history(table: Path, topic: str = "orders") -> list[LogState]:
    """The log after each commit that is still there, as the commit says."""
    return [
        LogState(
            topic=topic, batch=told["batch"], kind=told["kind"], watermark=told["watermark"],
            ends={(int(e), int(p)): end for e, ends in told["ends"].items() for p, end in ends.items()},
            counts={name: told["counts"][name] for name in VERDICTS if name in told["counts"]},
            copies=told["counts"].get(REPLAYED, 0),
        )
        for told in _metadata(table, "batch")
    ]  # fmt: skip


def log_state(table: Path, topic: str = "orders") -> LogState:
    """The log as it is now, with what its rows and commits count."""
    return with_rows(log_history(table, topic), table)


def with_rows(history: list[LogState], table: Path) -> LogState:
    """The last state of a log's history, with what its rows and commits count."""
    rows = rows_of(table, ["epoch", "partition", "offset", "replay"])
    originals: dict[Place, list[int]] = {}
    for row in rows:
        if not row["replay"]:
            originals.setdefault((row["epoch"], row["partition"]), []).append(row["offset"])
    return replace(
        history[-1], held=len(rows), batches=[one.batch for one in history],
        originals={at: len(found) for at, found in originals.items()},
        distinct={at: len({*found}) for at, found in originals.items()},
    )  # fmt: skip


def version_history(table: Path, name: str, topic: str = "orders") -> list[VersionState]:
    """A stored version after each step that is still there, as its commit says; nothing of one that does not
    read the topic."""
    return [
        VersionState(
            name=name, position=told["position"][topic], step=told["step"], segment=told["segment"],
            records=told["records"],
        )
        for told in _metadata(table, "step")
        if topic in told["position"]
    ]  # fmt: skip


def version_state(table: Path, name: str, topic: str = "orders") -> VersionState:
    """A stored version as it is now, with the steps that its commits count."""
    return with_steps(version_history(table, name, topic))


def with_steps(history: list[VersionState]) -> VersionState:
    """The last state of a version's history, with the steps that its commits count."""
    return replace(history[-1], steps=[one.step for one in history])


def evidence_of(table: Path) -> Evidence:
    """What the rows of a stored version have counted."""
    rows = rows_of(table, ["_rows", "_hash_low", "_hash_high"])
    counted = [row for row in rows if row["_hash_low"] is not None]
    return Evidence(
        rows=sum(row["_rows"] for row in counted), low=sum(row["_hash_low"] for row in counted),
        high=sum(row["_hash_high"] for row in counted),
    )  # fmt: skip


def release_state(release: Release) -> ReleaseState:
    return ReleaseState(number=release.number, tables=release.tables, positions=release.positions)


def rows_of(table: Path, columns: list[str]) -> list[dict[str, Any]]:
    """Of each live file as it is on the disk, however long Delta's log says that it is."""
    files = (Path(uri.removeprefix("file://")) for uri in DeltaTable(str(table)).file_uris())
    found = (pq.ParquetFile(file).read(columns).to_pylist() for file in files)  # type: ignore[no-untyped-call]
    return [row for rows in found for row in rows]


def _metadata(table: Path, told: str) -> Iterator[dict[str, Any]]:
    for version in range(delta.newest_version(table) + 1):
        commit = delta.commit(table, version)
        if commit and told in commit.metadata:
            yield commit.metadata
