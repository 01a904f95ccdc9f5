"""What Airflow keeps is bounded: a real database and its logs."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.project import EXAMPLES, PROJECT, example_of
from twinlake.base.errors import TwinlakeError
from twinlake.base.times import utc_now
from twinlake.services import airflow
from twinlake.services.part import Context


def ran(database: Path, run: str, days_ago: int) -> None:
    """A run of DAG `batch` that ended so long ago, as Airflow's database knows it."""
    at = (utc_now() - timedelta(days=days_ago)).isoformat(sep=" ")
    with sqlite3.connect(database) as connection:
        template = "INSERT INTO log_template (filename, elasticsearch_id, created_at) VALUES ('f', 'e', ?)"
        (number,) = connection.execute(f"{template} RETURNING id", (at,)).fetchone()
        connection.execute(
            "INSERT INTO dag_run (dag_id, run_id, run_type, run_after, start_date, end_date, state,"
            " queued_at, logical_date, updated_at, clear_number, span_status, created_dag_version_id,"
            " log_template_id)"
            " VALUES ('batch', ?, 'scheduled', ?, ?, ?, 'success', ?, ?, ?, 0, 'ended', NULL, ?)",
            (run, at, at, at, at, at, at, number),
        )


def runs(database: Path) -> list[str]:
    with sqlite3.connect(database) as connection:
        return [name for (name,) in connection.execute("SELECT run_id FROM dag_run ORDER BY run_id")]


def pools(database: Path) -> set[str]:
    with sqlite3.connect(database) as connection:
        return {name for (name,) in connection.execute("SELECT pool FROM slot_pool")}


def test_a_project_without_a_folder_of_dags_runs_those_of_the_library(context: Context) -> None:
    (example, *_) = EXAMPLES
    settings = replace(context.settings, in_project=example_of(example))

    ours, theirs = (
        airflow.environment(one)["AIRFLOW__CORE__DAGS_FOLDER"]
        for one in (context, replace(context, settings=settings))
    )

    assert ours == str(PROJECT / "dags")
    assert {one.name: one.read_text() for one in Path(theirs).glob("*.py")} == {
        one.name: one.read_text() for one in Path(ours).glob("*.py")
    }


@pytest.mark.faults
def test_pools_are_made_and_old_runs_go_with_their_logs_and_young_ones_stay(context: Context) -> None:
    airflow._migrate(context)
    folder = context.folders.private("airflow")
    assert pools(folder / "airflow.db") == {"default_pool", "twinlake_batch", "twinlake_release"}
    for run, days_ago in (("old", 40), ("older", 90), ("young", 2)):
        ran(folder / "airflow.db", run, days_ago)
        log = folder / f"logs/dag_id=batch/run_id={run}/task_id=t/attempt=1.log"
        log.parent.mkdir(parents=True)
        log.write_text("said")
        age = (utc_now() - timedelta(days=days_ago)).timestamp()
        for path in (log, log.parent, log.parent.parent):
            os.utime(path, (age, age))

    airflow.forget_old(context)

    assert runs(folder / "airflow.db") == ["young"]
    assert [path.name for path in (folder / "logs/dag_id=batch").iterdir()] == ["run_id=young"]
    airflow.forget_old(context, keep=timedelta(0))
    assert not any(folder.joinpath("logs").iterdir())


def test_what_airflow_refuses_is_told_in_its_words(context: Context) -> None:
    folder = context.folders.private("airflow")
    (folder / "airflow.db").write_text("no database")

    with pytest.raises(TwinlakeError, match="`airflow db clean` failed") as caught:
        airflow.forget_old(context)

    assert "not a database" in caught.value.why
