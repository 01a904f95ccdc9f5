"""PyHive, and SQLAlchemy by its dialect, as readers have them: in an environment of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.reading.conftest import ALL, PASSWORD, SqlServer
from tests.reading.test_browsing import OF_LOGS, VIEWS

CLIENT = Path(__file__).with_name("python_drivers.py")


@pytest.fixture(scope="module")
def seen(sql: SqlServer, drivers_folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [str(drivers_folder / "python" / "bin" / "python"), str(CLIENT), str(sql.jdbc_port), PASSWORD],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_pyhive_reads_lists_and_is_refused_what_writes(seen: dict[str, Any]) -> None:
    told = seen["pyhive"]

    assert told["counted"] == [[str(ALL // 5), "19.96"]]
    assert {"serve", "release_1"} <= set(told["schemas"]) and "meta" not in told["schemas"]
    assert set(told["tables"]) == VIEWS | OF_LOGS
    assert "is refused, because" in told["refused"] and "do:  use SELECT" in told["refused"]


def test_sqlalchemy_reflects_and_reads(seen: dict[str, Any]) -> None:
    told = seen["sqlalchemy"]

    assert told["counted"] == [[f"r{at}", ALL // 5] for at in range(5)]
    assert {"serve", "release_1"} <= set(told["schemas"]) and "meta" not in told["schemas"]
    assert set(told["tables"]) == set(told["here"]) == VIEWS | OF_LOGS
    assert set(told["views"]) == VIEWS | OF_LOGS
    assert told["has"] == [True]


def test_sqlalchemy_knows_the_types_of_columns(seen: dict[str, Any]) -> None:
    columns = seen["sqlalchemy"]["columns"]

    assert {name: columns[name] for name in ("region", "window_start", "orders", "sales")} == {
        "region": "String", "window_start": "HiveTimestamp", "orders": "BigInteger", "sales": "HiveDecimal"
    }  # fmt: skip
