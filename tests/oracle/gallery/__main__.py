"""Command line: `python -m tests.oracle.gallery EXAMPLE --services FILE --tables JSON`; exit 1: it differs.

The records are read from the broker, each table from the SQL server; every table must have caught up.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from tests.oracle.gallery import EXAMPLES
from tests.oracle.gallery.records import Record, valid
from tests.oracle.gallery.schemas import schema_of
from tests.oracle.shown import SqlDoor
from tests.oracle.topic import Records, client_of, read
from tests.oracle.watermark import Watermark, watermark

FOLDER = Path(__file__).resolve().parents[3] / "examples"
ABOUT = 0.0101
"""Doubles are quantiles here, which are at most 1 % off."""
EXAMPLES_TOLD = 3
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.gallery", description=__doc__)
    parser.add_argument("example", choices=EXAMPLES)
    parser.add_argument(
        "--services", type=Path, required=True, help="services.json: addresses and the password"
    )
    parser.add_argument(
        "--tables", required=True, help='by table its keys and compared columns: {"t": [["k"], ["n"]]}'
    )
    asked = parser.parse_args()
    services = json.loads(asked.services.read_text())
    door = SqlDoor(services["sql_url"], services["sql_user"], services["sql_password"])
    folder = FOLDER / asked.example
    topics = _topics(folder)
    kafka = client_of(services)
    held = {topic: read(kafka, topic)[0] for topic in topics}
    records = {topic: _valid(folder, topic, held[topic]) for topic in topics}
    given: dict[str, tuple[list[str], list[str]]] = json.loads(asked.tables)
    found = {
        table: _shown(door, table, keys, columns) for table, (keys, columns) in given.items()
    }  # fmt: skip
    moments: dict[str, datetime] = {}
    equal = True
    if "songs_lately" in given:
        bounds = _bounds(records["plays"])
        (row,) = door.rows("SELECT max(window_end) AS end FROM serve.songs_lately")
        moment, why = lately(_plain(row["end"]), bounds)
        moments |= {"plays": moment} if moment else {}
        if why:
            equal = False
            print(f"songs_lately: {why}")
    expected = EXAMPLES[asked.example].tables(records, moments)
    for table in given:
        differing = different(found[table], expected[table])
        equal &= not differing
        said = "equal" if not differing else f"DIFFERENT in {len(differing):,}"
        print(f"{table}: {said} ({len(expected[table]):,} rows)")
        for line in differing[:EXAMPLES_TOLD]:
            print(f"  {line}")
    return 0 if equal else 1


def different(found: dict[tuple[Any, ...], Any], expected: dict[tuple[Any, ...], Any]) -> list[str]:
    """A line for each key whose rows are not the same."""
    wanted = {tuple(map(_plain, key)): row for key, row in expected.items()}
    return [
        f"{key}: shown {found.get(key)}, must be {wanted.get(key)}"
        for key in {**wanted, **found}
        if key not in found or key not in wanted or not _same(found[key], wanted[key])
    ]


def lately(end: datetime | None, bounds: Watermark) -> tuple[datetime | None, str]:
    """The moment by which a table over the last minutes is judged, and what is wrong with the one it shows.

    Where in these bounds the watermark stands is the platform's to say; what it measured then is not.
    """
    low, high = (None if ms is None else _minute(ms) for ms in (bounds.low, bounds.high))
    if end is None:
        return low, ""  # without rows: wrong, unless there is nothing to show by the least watermark
    if high is None or end > high or (low is not None and end < low):
        return low, f"ends at {end}, and the watermark's minute is one of {low} to {high}"
    return end, ""


def _minute(ms: int) -> datetime:
    return datetime.fromtimestamp(ms // 60_000 * 60, UTC)


def _bounds(plays: list[Record]) -> Watermark:
    """Those of the topic of songs that were played."""
    rows = [(play["partition"], _ms(play["timestamp"]), _ms(play["played_at"])) for play in plays]
    columns = {"partition": pl.Int32, "timestamp": pl.Int64, "ordered_at": pl.Int64}
    return watermark(pl.DataFrame(rows, schema=columns, orient="row"))


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _topics(folder: Path) -> list[str]:
    """Those with a schema file, and those whose contract says JSON."""
    found = {path.name.split(".")[0] for path in (folder / "schemas").glob("*.v1.*")}
    for path in (folder / "contracts").glob("*.yaml"):
        said = yaml.safe_load(path.read_text()).get("customProperties", [])
        if any((one["property"], one["value"]) == ("format", "json") for one in said):
            found.add(path.stem)
    return sorted(found)


def _valid(folder: Path, topic: str, records: Records) -> list[Record]:
    contract = yaml.safe_load((folder / "contracts" / f"{topic}.yaml").read_text())
    return valid(records, schema_of(folder, topic), contract)


def _shown(door: SqlDoor, table: str, keys: list[str], columns: list[str]) -> dict[tuple[Any, ...], Any]:
    named = ", ".join(f"`{name}`" for name in (*keys, *columns))
    found: dict[tuple[Any, ...], Any] = {}
    for row in door.rows(f"SELECT {named} FROM serve.{table}"):
        key = tuple(_plain(row[name]) for name in keys)
        if key in found:
            raise RuntimeError(f"{table} has two rows for {key}")
        found[key] = {name: row[name] for name in columns}
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        return datetime.fromisoformat(value).astimezone(UTC)
    return value


def _same(found: Any, expected: Any) -> bool:
    """Whether a value of a JSON answer is that of the oracle."""
    if found is None or expected is None:
        return found is expected
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(_same(found[name], expected[name]) for name in found)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(_same, found, expected))
    if isinstance(expected, float):
        return math.isclose(float(found), expected, rel_tol=ABOUT)
    if isinstance(expected, Decimal | int) and not isinstance(expected, bool):
        return Decimal(found) == expected
    return bool(_plain(found) == expected)


if __name__ == "__main__":
    sys.exit(main())
