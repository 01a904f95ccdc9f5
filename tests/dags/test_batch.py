"""What the DAG `batch` asks about each table, in a scheduled run and in a backfill's, and what it says."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from twinlake.airflow import batch as dag_file

INTERVAL = ("2026-03-01T12:00:00Z", "2026-03-01T12:15:00Z")
LIVE = [
    {"name": "sales", "stored": True, "windows": True}, {"name": "latest", "stored": True, "windows": False}
]  # fmt: skip


def certified(rows: int, first: str | None = "2026-03-01T00:00:00Z", due: bool = True) -> dict[str, Any]:
    covers = {"covers": "some windows", "due": due, "first_window": first}
    return {"table": "sales", "rows_compared": rows, **covers}


@pytest.mark.parametrize(
    ("run_type", "asked"),
    [
        ("scheduled", {"table": "sales", "due": True}), ("manual", {"table": "sales", "due": True}),
        ("backfill", {"table": "sales", "from": INTERVAL[0], "to": INTERVAL[1]}),
    ],
)  # fmt: skip
def test_a_run_of_a_backfill_is_about_its_data_interval_and_others_about_what_is_due(
    monkeypatch: pytest.MonkeyPatch, run_type: str, asked: dict[str, Any]
) -> None:
    context = {
        "params": {"windows": "due"},
        "dag_run": SimpleNamespace(run_type=run_type),
        "data_interval_start": datetime(2026, 3, 1, 12, 0, tzinfo=UTC),
        "data_interval_end": datetime(2026, 3, 1, 12, 15, tzinfo=UTC),
    }
    monkeypatch.setattr(dag_file, "get_current_context", lambda: context)

    assert dag_file.asked("sales") == asked


def test_every_run_says_what_it_has_certified() -> None:
    said = dag_file.summary_lines(LIVE, [certified(7), certified(9, due=False)], None)

    assert said == [
        "sales: speed and batch are equal, 7 rows compared (some windows)",
        "sales: speed and batch are equal, 9 rows compared "
        "(some windows; nothing was pending, this is its newest certificate)",
    ]


def test_a_backfill_says_which_intervals_are_quiet_and_which_tables_it_leaves_out() -> None:
    said = dag_file.summary_lines(LIVE, [certified(0)], INTERVAL)

    assert said == [
        "sales: speed and batch are equal, 0 rows compared (some windows: none of them has a row)",
        "left out, because they have no windows: latest",
    ]


@pytest.mark.parametrize(
    ("first", "why"),
    [(INTERVAL[1], f"begins at {INTERVAL[1]}"), (None, "no table has a window yet")],
)
def test_a_backfill_fails_for_an_interval_before_the_first_record(first: str | None, why: str) -> None:
    with pytest.raises(AirflowFailException, match=why):
        dag_file.summary_lines(LIVE, [certified(0, first)], INTERVAL)
