"""The invariants and their oracle find nothing in a real lake, and both find what is planted there."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests import invariants_oracle as oracle
from tests.small_lake.small import HERE
from twinlake.lake import invariants as must
from twinlake.lake.catalog import release_log
from twinlake.lake.delta import delta
from twinlake.lake.invariants import Evidence, LogState, ReaderState, ReleaseState, VersionState
from twinlake.topics.verdict import REPLAYED, VERDICTS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    with tarfile.open(HERE / "format_0.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder / "lake"


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "lake"))


def log_of(lake: Path) -> Path:
    return lake / "logs" / "orders"


def totals_of(lake: Path) -> Path:
    """It counts every valid record once."""
    return next((lake / "tables" / "totals").glob("*-2"))


def metadata(table: Path, told: str) -> Iterator[dict[str, Any]]:
    for version in range(delta.newest_version(table) + 1):
        commit = delta.commit(table, version)
        if commit and told in commit.metadata:
            yield commit.metadata


def rows_of(table: Path, columns: list[str]) -> list[dict[str, Any]]:
    """Of each live file as it is on the disk, however long Delta's log says that it is."""
    files = (Path(uri.removeprefix("file://")) for uri in DeltaTable(str(table)).file_uris())
    found = (pq.ParquetFile(file).read(columns).to_pylist() for file in files)  # type: ignore[no-untyped-call]
    return [row for rows in found for row in rows]


def log_state(lake: Path) -> LogState:
    path = log_of(lake)
    all_ = [*metadata(path, "batch")]
    columns = ["epoch", "partition", "offset", "replay"]
    rows = rows_of(path, columns)
    originals: dict[must.Place, list[int]] = {}
    for row in rows:
        if not row["replay"]:
            originals.setdefault((row["epoch"], row["partition"]), []).append(row["offset"])
    newest = all_[-1]
    return LogState(
        topic="orders", batch=newest["batch"], watermark=newest["watermark"], held=len(rows),
        ends={(int(e), int(p)): end for e, ends in newest["ends"].items() for p, end in ends.items()},
        counts={name: newest["counts"][name] for name in VERDICTS if name in newest["counts"]},
        copies=newest["counts"].get(REPLAYED, 0), batches=[one["batch"] for one in all_],
        originals={at: len(found) for at, found in originals.items()},
        distinct={at: len({*found}) for at, found in originals.items()},
    )  # fmt: skip


def version_state(lake: Path) -> VersionState:
    path = totals_of(lake)
    all_ = [*metadata(path, "step")]
    newest = all_[-1]
    rows = rows_of(path, ["_rows", "_hash_low", "_hash_high"])
    counted = [row for row in rows if row["_hash_low"] is not None]
    return VersionState(
        name="totals", position=newest["position"]["orders"], step=newest["step"], segment=newest["segment"],
        records=newest["records"], steps=[one["step"] for one in all_],
        evidence=Evidence(
            rows=sum(row["_rows"] for row in counted), low=sum(row["_hash_low"] for row in counted),
            high=sum(row["_hash_high"] for row in counted),
        ),
    )  # fmt: skip


def of_lake(before: Path, lake: Path) -> set[str]:
    """The names of the invariants that are broken between the lake as it was and as it is."""
    old, new = log_state(before), log_state(lake)
    was, now = version_state(before), version_state(lake)
    assert was.evidence
    found = {*must.log_broken(old, new), *must.version_broken(was, now)}
    found |= {"evidence_matches"} if must.evidence_matches(now, was.evidence) else set()
    return found


def of_oracle(lake: Path) -> dict[str, list[str]]:
    log, totals = log_of(lake), totals_of(lake)
    found = {
        "lost": oracle.lost(log), "doubled": oracle.doubled(log), "batches": oracle.batches_out_of_order(log),
        "steps": oracle.steps_out_of_order(totals), "positions": oracle.positions_back(totals),
        "counted": oracle.wrongly_counted(totals, log),
    }  # fmt: skip
    return {name: broken for name, broken in found.items() if broken}


def remove_a_record(lake: Path) -> None:
    file = Path(oracle.live_files(log_of(lake))[0])
    rows = pq.ParquetFile(file).read()  # type: ignore[no-untyped-call]
    pq.write_table(rows.slice(1), file)  # type: ignore[no-untyped-call]


def commit_files(table: Path) -> list[Path]:
    return sorted((table / "_delta_log").glob("*.json"))


def again(table: Path, change: Callable[[dict[str, Any]], None], wanted: str) -> None:
    """Commit the newest commit of this kind once more, its metadata changed and its data files copied."""
    files = commit_files(table)
    chosen = next(file for file in reversed(files) if f'\\"kind\\":\\"{wanted}\\"' in file.read_text())
    actions = [json.loads(line) for line in chosen.read_text().splitlines()]
    for action in actions:
        if info := action.get("commitInfo"):
            told = json.loads(info["userMetadata"])
            change(told)
            info["userMetadata"] = json.dumps(told)
        if add := action.get("add"):
            copied = Path(add["path"]).with_name(f"copy-{Path(add['path']).name}")
            shutil.copy(table / add["path"], table / copied)
            add["path"] = str(copied)
    target = table / "_delta_log" / f"{len(files):020d}.json"
    target.write_text("".join(json.dumps(action) + "\n" for action in actions))


def double_a_batch(lake: Path) -> None:
    again(log_of(lake), lambda told: None, "batch")


def move_a_position_back(lake: Path) -> None:
    newest = version_state(lake)

    def change(told: dict[str, Any]) -> None:
        told.update(step=newest.step + 1, position={"orders": newest.position - 1})

    again(totals_of(lake), change, "step")


def drop_a_step(lake: Path) -> None:
    """Its commit says nothing and adds nothing, as if somebody had undone it."""
    steps = [file for file in commit_files(totals_of(lake)) if '\\"kind\\":\\"step\\"' in file.read_text()]
    actions = [json.loads(line) for line in steps[1].read_text().splitlines()]
    actions[0]["commitInfo"].pop("userMetadata")
    actions[0]["commitInfo"]["operationMetrics"]["numFiles"] = "0"
    steps[1].write_text("".join(json.dumps(one) + "\n" for one in actions if "add" not in one))


PLANTED: dict[str, tuple[Callable[[Path], None], set[str], set[str]]] = {
    "a record is removed": (remove_a_record, {"nothing_lost"}, {"lost"}),
    "a batch is doubled": (
        double_a_batch, {"nothing_doubled", "batches_without_gap"}, {"doubled", "batches"},
    ),
    "a position is moved back": (move_a_position_back, {"positions_never_back"}, {"positions"}),
    "a step is dropped": (drop_a_step, {"steps_without_gap", "evidence_matches"}, {"steps", "counted"}),
}  # fmt: skip


def test_a_sound_lake_breaks_nothing_for_either(made: Path) -> None:
    assert of_lake(made, made) == set()
    assert of_oracle(made) == {}


@pytest.mark.parametrize(("plant", "named", "stated"), PLANTED.values(), ids=PLANTED)
def test_what_is_planted_is_found_by_both(
    made: Path, lake: Path, plant: Callable[[Path], None], named: set[str], stated: set[str]
) -> None:
    plant(lake)

    assert named <= of_lake(made, lake)
    assert stated <= of_oracle(lake).keys()


def test_a_mixture_of_two_releases_is_found_by_both(made: Path) -> None:
    history = release_log.releases(made)
    states = [ReleaseState(number=one.number, tables=one.tables, positions=one.positions) for one in history]
    first, last = history[0].tables, history[-1].tables
    one, other, *_ = sorted(table for table, name in first.items() if last[table] != name)
    mixed = {one: first[one], other: last[other]}

    def broken(seen: dict[str, str]) -> list[bool]:
        reader = ReaderState(versions={table: frozenset({name}) for table, name in seen.items()})
        return [
            bool(must.one_release_per_statement(reader, states)),
            bool(oracle.mixed(seen, [release.tables for release in history])),
        ]

    assert broken(mixed) == [True, True]
    assert broken({table: last[table] for table in mixed}) == [False, False]
