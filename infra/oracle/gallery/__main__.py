"""Command line: `python -m infra.oracle.gallery EXAMPLE --services FILE --tables JSON`; exit 1: it differs.

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

import yaml

from infra.oracle.gallery import EXAMPLES
from infra.oracle.gallery.records import Record, valid
from infra.oracle.shown import SqlDoor
from infra.oracle.topic import read

FOLDER = Path(__file__).resolve().parents[3] / "jobs" / "tables" / "gallery"
ABOUT = 0.0101
"""Doubles are quantiles here, which are at most 1 % off."""
EXAMPLES_TOLD = 3
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.oracle.gallery", description=__doc__)
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
    records = {
        topic: _valid(services["bootstrap_servers"], FOLDER / asked.example, topic)
        for topic in sorted(
            path.name.split(".")[0] for path in (FOLDER / asked.example / "schemas").glob("*.v1.avsc")
        )
    }
    given: dict[str, tuple[list[str], list[str]]] = json.loads(asked.tables)
    found = {
        table: _shown(door, table, keys, columns) for table, (keys, columns) in given.items()
    }  # fmt: skip
    expected = EXAMPLES[asked.example].tables(records, _watermarks(door, given, records))
    equal = True
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


def _valid(bootstrap_servers: str, folder: Path, topic: str) -> list[Record]:
    schema = json.loads((folder / "schemas" / f"{topic}.v1.avsc").read_text())
    contract = yaml.safe_load((folder / "contracts" / f"{topic}.yaml").read_text())
    records, _ = read(bootstrap_servers, topic)
    return valid(records, schema, contract)


def _shown(door: SqlDoor, table: str, keys: list[str], columns: list[str]) -> dict[tuple[Any, ...], Any]:
    named = ", ".join(f"`{name}`" for name in (*keys, *columns))
    found: dict[tuple[Any, ...], Any] = {}
    for row in door.rows(f"SELECT {named} FROM serve.{table}"):
        key = tuple(_plain(row[name]) for name in keys)
        if key in found:
            raise RuntimeError(f"{table} has two rows for {key}")
        found[key] = {name: row[name] for name in columns}
    return found


def _watermarks(door: SqlDoor, given: Any, records: dict[str, list[Record]]) -> dict[str, datetime]:
    """Where a table over the last minutes stands is the platform's to say; what it measured is not."""
    if "songs_lately" not in given:
        return {}
    ends = {row["end"] for row in door.rows("SELECT max(window_end) AS end FROM serve.songs_lately")}
    at = {_plain(end) for end in ends if end is not None}
    newest = max((play["played_at"] for play in records["plays"]), default=None)
    if len(at) == 1 and newest is not None and (end := at.pop()) <= newest:
        return {"plays": end}
    return {}


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
