"""What must hold, stated a second time over a lake's own files: SQL and plain loops, none of `twinlake`.

Each statement reads rows and commits as they are in storage and returns what is broken, in short sentences.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb


def commits(table: Path) -> Iterator[tuple[dict[str, Any], list[str], list[str]]]:
    """By commit, what it says of itself, and the files that it adds and removes."""
    for file in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        said = [one["commitInfo"].get("userMetadata") for one in actions if "commitInfo" in one]
        yield (
            json.loads((said and said[0]) or "{}"),
            [one["add"]["path"] for one in actions if "add" in one],
            [one["remove"]["path"] for one in actions if "remove" in one],
        )


def live_files(table: Path) -> list[str]:
    live: dict[str, None] = {}
    for _, added, removed in commits(table):
        for path in removed:
            live.pop(path, None)
        live |= dict.fromkeys(added)
    return [str(table / path.replace("%3A", ":")) for path in live]


def ask(sql: str, files: list[str]) -> list[tuple[Any, ...]]:
    relation = f"read_parquet({files!r}, union_by_name = true)"
    return duckdb.connect().execute(sql.replace("ROWS", relation)).fetchall()


def lost(log: Path) -> list[str]:
    """Offsets below the log's end that no row has (these topics have no transactions, so no holes)."""
    (*_, newest) = [said for said, _, _ in commits(log) if "ends" in said]
    sql = 'SELECT epoch, partition, count(DISTINCT "offset") FROM ROWS WHERE NOT replay GROUP BY ALL'
    have = {(epoch, partition): number for epoch, partition, number in ask(sql, live_files(log))}
    return [
        f"{end - found} of {epoch}/{partition} are missing"
        for epoch, ends in newest["ends"].items()
        for partition, end in ends.items()
        if (found := have.get((int(epoch), int(partition)), 0)) < end
    ]


def doubled(log: Path) -> list[str]:
    """Record ids with several originals."""
    sql = """SELECT epoch, partition, "offset", count(*) FROM ROWS WHERE NOT replay GROUP BY ALL
    HAVING count(*) > 1"""
    return [f"{epoch}/{partition}/{offset} is there {number} times"
            for epoch, partition, offset, number in ask(sql, live_files(log))]  # fmt: skip


def batches_out_of_order(log: Path) -> list[str]:
    numbers = [said["batch"] for said, _, _ in commits(log) if "batch" in said]
    return [] if numbers == [*range(1, len(numbers) + 1)] else [f"batches are {numbers}"]


def steps_out_of_order(version: Path) -> list[str]:
    numbers = [said["step"] for said, _, _ in commits(version) if "step" in said]
    return [] if numbers == [*range(1, len(numbers) + 1)] else [f"steps are {numbers}"]


def positions_back(version: Path) -> list[str]:
    at = [next(iter(said["position"].values())) for said, _, _ in commits(version) if "step" in said]
    return [] if at == sorted(at) else [f"positions are {at}"]


def wrongly_counted(version: Path, log: Path) -> list[str]:
    """A version that takes every valid record (copies among them) has as many in its rows."""
    (*_, at) = [next(iter(said["position"].values())) for said, _, _ in commits(version) if "step" in said]
    ((wanted,),) = ask(
        f"SELECT count(*) FROM ROWS WHERE verdict = 'valid' AND batch <= {at}", live_files(log)
    )
    ((found,),) = ask("SELECT sum(_rows) FROM ROWS WHERE _hash_low IS NOT NULL", live_files(version))
    return [] if found == wanted else [f"{found} are counted of {wanted}"]


def verdicts_changed(log: Path) -> list[str]:
    """Verdicts whose numbers, over the rows as they are, are not those that the commits have said, batch by
    batch: what a replay has copied counts by the newest copy."""
    rows = ask('SELECT epoch, partition, "offset", batch, verdict FROM ROWS ORDER BY batch', live_files(log))
    latest: dict[tuple[int, int, int], str] = {}
    found: list[str] = []
    for said, _, _ in commits(log):
        if "counts" not in said:
            continue
        while rows and rows[0][3] <= said["batch"]:
            epoch, partition, offset, _, verdict = rows.pop(0)
            latest[epoch, partition, offset] = verdict
        for verdict in ("valid", "invalid", "duplicate", "too_late"):
            number, told = sum(one == verdict for one in latest.values()), said["counts"][verdict]
            if number != told:
                found.append(f"batch {said['batch']}: {number} are {verdict}, {told} were said")
    return found


def watermark_back(log: Path) -> list[str]:
    at = [said["watermark"] for said, _, _ in commits(log) if said.get("watermark") is not None]
    return [f"{after} follows {before}" for before, after in pairwise(at) if after < before]


def written_after_closing(version: Path) -> list[str]:
    """Steps that have added files to a segment that a commit before them has closed."""
    closed, found = -1, []
    for said, added, _ in commits(version):
        if said.get("kind") == "close":
            closed = max(closed, said["segment"])
        elif said.get("kind") == "step":
            segments = {int(path.replace("%3D", "=").split("_segment=")[1].split("/")[0]) for path in added}
            found += [f"step {said['step']} adds to segment {one}" for one in segments if one <= closed]
    return found


def out_of_reach(log: Path, shown: list[tuple[int, int, int]]) -> list[str]:
    """Record ids whose newest row has no good verdict and that the quarantine does not show (`shown`), and
    those that it shows besides."""
    rows = ask('SELECT epoch, partition, "offset", verdict FROM ROWS ORDER BY batch', live_files(log))
    newest = {(epoch, partition, offset): verdict for epoch, partition, offset, verdict in rows}
    bad = [at for at, verdict in newest.items() if verdict not in ("valid", "ignored")]
    if sorted(bad) == sorted(shown):
        return []
    return [f"left out: {sorted({*bad} - {*shown})}", f"besides: {sorted({*shown} - {*bad})}"]


def of_another_history(version: Path, log: Path) -> list[str]:
    """Steps that have counted another number of the log's rows than there are up to their position."""
    batches = [batch for (batch,) in ask("SELECT batch FROM ROWS", live_files(log))]
    return [
        f"step {said['step']} says {said['records']} rows, {number} are there"
        for said, _, _ in commits(version)
        if "step" in said
        for at in said["position"].values()
        if (number := sum(batch <= at for batch in batches)) != said["records"]
    ]


def mixed(seen: dict[str, str], releases: list[dict[str, str]]) -> list[str]:
    """Versions by table that are of no one release."""
    return [] if any(seen.items() <= one.items() for one in releases) else [f"{seen} is not a release"]
