"""The invariants and their oracle find nothing in a real lake, and both find what is planted there."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import invariants_oracle as oracle
from tests.small_lake.small import unpack
from tests.states import evidence_of, log_state, release_state, rows_of, version_state
from twinlake.lake import invariants as must
from twinlake.lake.catalog import release_log
from twinlake.lake.invariants import LogState, ReaderState, VersionState
from twinlake.lake.log import quarantine


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(0, tmp_path_factory.mktemp("small"))


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "lake"))


def log_of(lake: Path) -> Path:
    return lake / "logs" / "orders"


def totals_of(lake: Path) -> Path:
    """It counts every valid record once."""
    return next((lake / "tables" / "totals").glob("*-2"))


def segmented_of(lake: Path) -> Path:
    """The build of the same table before, whose first segment is closed."""
    return next((lake / "tables" / "totals").glob("*-1"))


def by_rows(lake: Path) -> LogState:
    """The log's verdicts as its rows have them, of each record id the newest."""
    rows = rows_of(log_of(lake), ["epoch", "partition", "offset", "batch", "verdict"])
    rows.sort(key=lambda row: row["batch"])
    newest = {(row["epoch"], row["partition"], row["offset"]): row["verdict"] for row in rows}
    return LogState(topic="orders", counts=Counter(newest.values()))


def quarantine_of(lake: Path) -> list[tuple[int, int, int]]:
    """What the quarantine shows, by the SQL that readers are given, in DuckDB's spelling."""
    rows = f"read_parquet({oracle.live_files(log_of(lake))!r}, union_by_name = true)"
    sql = (
        quarantine.quarantine_sql(rows)
        .replace("LEFT ANTI JOIN", "ANTI JOIN")
        .replace(" offset,", ' "offset",')
    )
    return duckdb.sql(f'SELECT epoch, partition, "offset" FROM ({sql})').fetchall()


def states(table: Path) -> VersionState:
    return replace(version_state(table, "totals"), evidence=evidence_of(table))


def of_lake(before: Path, lake: Path) -> set[str]:
    """The names of the invariants that are broken between the lake as it was and as it is."""
    old, new = log_state(log_of(before)), log_state(log_of(lake))
    was, now = states(totals_of(before)), states(totals_of(lake))
    segmented = states(segmented_of(before)), states(segmented_of(lake))
    assert was.evidence
    broken = {
        "evidence_matches": must.evidence_matches(now, was.evidence),
        "same_history": must.same_history(now, new),
        "verdicts_stand": must.verdicts_stand(by_rows(before), by_rows(lake)),
        "segments_closed_once": must.segments_closed_once(*segmented),
        "quarantine_in_reach": must.quarantine_in_reach(replace(new, quarantined=len(quarantine_of(lake)))),
    }
    found = {name for name, sentences in broken.items() if sentences}
    return found | {*must.log_broken(old, new), *must.version_broken(was, now)}


def of_oracle(lake: Path) -> dict[str, list[str]]:
    log, totals = log_of(lake), totals_of(lake)
    found = {
        "lost": oracle.lost(log), "doubled": oracle.doubled(log), "batches": oracle.batches_out_of_order(log),
        "steps": oracle.steps_out_of_order(totals), "positions": oracle.positions_back(totals),
        "counted": oracle.wrongly_counted(totals, log), "verdicts": oracle.verdicts_changed(log),
        "watermark": oracle.watermark_back(log), "history": oracle.of_another_history(totals, log),
        "segments": oracle.written_after_closing(segmented_of(lake)),
        "quarantine": oracle.out_of_reach(log, quarantine_of(lake)),
    }  # fmt: skip
    return {name: broken for name, broken in found.items() if broken}


def remove_a_record(lake: Path) -> None:
    file = Path(oracle.live_files(log_of(lake))[0])
    rows = pq.ParquetFile(file).read()  # type: ignore[no-untyped-call]
    pq.write_table(rows.slice(1), file)  # type: ignore[no-untyped-call]


def commit_files(table: Path) -> list[Path]:
    return sorted((table / "_delta_log").glob("*.json"))


def again(table: Path, change: Callable[[dict[str, Any]], None], wanted: str, which: int = -1) -> None:
    """Commit a commit of this kind, the newest, once more, its metadata changed and its data files copied."""
    files = commit_files(table)
    chosen = [file for file in files if f'\\"kind\\":\\"{wanted}\\"' in file.read_text()][which]
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
    newest = states(totals_of(lake))

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


def judged(lake: Path, was: str, now: str | None) -> None:
    """One record in storage has another verdict than it was given."""
    for path in oracle.live_files(log_of(lake)):
        rows = pq.ParquetFile(path).read()  # type: ignore[no-untyped-call]
        verdicts = rows["verdict"].to_pylist()
        if was in verdicts:
            verdicts[verdicts.index(was)] = now
            at = rows.schema.get_field_index("verdict")
            changed = rows.set_column(at, "verdict", pa.array(verdicts, pa.string()))
            pq.write_table(changed, path)  # type: ignore[no-untyped-call]
            return


def change_a_verdict(lake: Path) -> None:
    judged(lake, "valid", "invalid")


def forget_a_verdict(lake: Path) -> None:
    """`NOT IN` is true of no NULL, so the quarantine does not show it."""
    judged(lake, "invalid", None)


def move_the_watermark_back(lake: Path) -> None:
    def change(told: dict[str, Any]) -> None:
        told.update(batch=told["batch"] + 1, watermark=told["watermark"] - 1)

    again(log_of(lake), change, "batch")


def write_to_a_closed_segment(lake: Path) -> None:
    newest = states(segmented_of(lake))

    def change(told: dict[str, Any]) -> None:
        told.update(step=newest.step + 1, position={"orders": newest.position}, records=newest.records)

    again(segmented_of(lake), change, "step", which=0)


def read_other_records(lake: Path) -> None:
    """The newest batch has fewer than the version has counted, as after a backup was restored."""
    newest = commit_files(log_of(lake))[-1]
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    for action in actions:
        if info := action.get("commitInfo"):
            told = json.loads(info["userMetadata"])
            told["counts"]["valid"] -= 1
            info["userMetadata"] = json.dumps(told)
        if add := action.get("add"):
            file = log_of(lake) / add["path"]
            rows = pq.ParquetFile(file).read()  # type: ignore[no-untyped-call]
            gone = rows["verdict"].to_pylist().index("valid")
            kept = pa.concat_tables([rows.slice(0, gone), rows.slice(gone + 1)])
            pq.write_table(kept, file)  # type: ignore[no-untyped-call]
    newest.write_text("".join(json.dumps(one) + "\n" for one in actions))


PLANTED: dict[str, tuple[Callable[[Path], None], set[str], set[str]]] = {
    "a record is removed": (remove_a_record, {"nothing_lost"}, {"lost"}),
    "a batch is doubled": (
        double_a_batch, {"nothing_doubled", "batches_without_gap"}, {"doubled", "batches"},
    ),
    "a position is moved back": (move_a_position_back, {"positions_never_back"}, {"positions"}),
    "a verdict is changed": (change_a_verdict, {"verdicts_stand"}, {"verdicts"}),
    "a verdict is forgotten": (forget_a_verdict, {"quarantine_in_reach"}, {"quarantine"}),
    "the watermark goes back": (move_the_watermark_back, {"watermark_never_back"}, {"watermark"}),
    "a closed segment is written to": (write_to_a_closed_segment, {"segments_closed_once"}, {"segments"}),
    "the log is of another history": (read_other_records, {"same_history"}, {"history"}),
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
    releases = [release_state(one) for one in history]
    first, last = history[0].tables, history[-1].tables
    one, other, *_ = sorted(table for table, name in first.items() if last[table] != name)
    mixed = {one: first[one], other: last[other]}

    def broken(seen: dict[str, str]) -> list[bool]:
        reader = ReaderState(versions={table: frozenset({name}) for table, name in seen.items()})
        return [
            bool(must.one_release_per_statement(reader, releases)),
            bool(oracle.mixed(seen, [release.tables for release in history])),
        ]

    assert broken(mixed) == [True, True]
    assert broken({table: last[table] for table in mixed}) == [False, False]
