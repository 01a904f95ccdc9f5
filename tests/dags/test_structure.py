"""Every DAG imports without Spark and has the shape that its name promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest
from airflow.sdk.timezone import utcnow
from airflow.serialization.serialized_objects import DagSerialization

from tests.project import OURS, PROJECT
from twinlake.airflow.release import MOST_RUNS
from twinlake.airflow.single import backup_dag, maintain_dag
from twinlake.base.times import format_moment
from twinlake.config.sections import Limits
from twinlake.config.settings import Services, Settings
from twinlake.server.release_models import RetireParams
from twinlake.services import airflow
from twinlake.services.folders import folders_of
from twinlake.services.part import Context
from twinlake.services.ports import Ports

SPARK_FREE = """
import sys
sys.path[:0] = [{dags!r}, {project!r}]
import backfill, backup, batch, maintain, release, reload, replay, rollback
heavy = {{"pyspark", "delta", "great_expectations", "deltalake", "duckdb", "polars", "pandas"}}
print(sorted(heavy & {{name.split(".")[0] for name in sys.modules}}))
"""


def _flow(dag) -> dict[str, set[str]]:
    return {task.task_id: set(task.downstream_task_ids) for task in dag.tasks}


def test_all_dags_import_without_an_error(bag) -> None:
    assert bag.import_errors == {}
    assert set(bag.dags) == {
        "batch", "backfill", "backup", "maintain", "release", "reload", "replay", "rollback"
    }  # fmt: skip


def test_no_dag_imports_spark_or_another_heavy_library() -> None:
    code = SPARK_FREE.format(dags=str(PROJECT / "dags"), project=str(PROJECT))

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_every_dag_runs_once_at_a_time_and_retries_what_asks_the_lake_server(bag) -> None:
    retries = {
        (dag.dag_id, task.task_id): task.retries
        for dag in bag.dags.values()
        for task in dag.tasks
        if task.task_id != "chunks"
    }

    at_once = {name: dag.max_active_runs for name, dag in bag.dags.items() if dag.max_active_runs != 1}
    assert at_once == {"release": MOST_RUNS}  # one may wait for its approval
    assert min(retries.values()) >= 2


def test_every_task_and_every_run_that_builds_nothing_has_its_limit_from_the_settings(bag) -> None:
    limits = Limits()

    runs = {name: dag.dagrun_timeout for name, dag in bag.dags.items() if dag.dagrun_timeout}
    assert runs == dict.fromkeys(
        ("backup", "batch", "maintain", "reload", "replay", "rollback"),
        timedelta(hours=limits.airflow_run_hours),
    )
    tasks = {task.execution_timeout for dag in bag.dags.values() for task in dag.tasks}
    assert tasks == {timedelta(minutes=limits.airflow_task_minutes)}
    approve = bag.dags["release"].get_task("approve")
    assert approve.response_timeout == timedelta(hours=limits.approval_hours)


def test_no_release_and_no_rollback_waits_for_what_is_in_the_pool_of_batch_work(bag) -> None:
    pools = json.loads((PROJECT / "twinlake" / "airflow" / "pools.json").read_text())
    used = {dag.dag_id: {task.pool for task in dag.tasks} for dag in bag.dags.values()}

    assert {name: found for name, found in used.items() if found != {"twinlake_batch"}} == {
        "release": {"twinlake_release"}, "rollback": {"twinlake_release"}
    }  # fmt: skip
    assert set(pools) == set.union(*used.values())
    assert {name: pool["include_deferred"] for name, pool in pools.items()} == {
        "twinlake_batch": True, "twinlake_release": False
    }  # fmt: skip


def test_release_and_rollback_always_find_a_slot(tmp_path) -> None:
    settings = Settings(home=tmp_path, in_project=OURS)
    folders = folders_of(settings)
    folders.make()
    ports = Ports(folders.run / "ports.json")
    context = Context(
        settings=settings, folders=folders, ports=ports, java_home=tmp_path, services=Services()
    )  # fmt: skip
    slots = int(airflow.environment(context)["AIRFLOW__CORE__PARALLELISM"])

    pools = json.loads((PROJECT / "twinlake" / "airflow" / "pools.json").read_text())
    assert sum(pool["slots"] for pool in pools.values()) <= slots


def test_the_triggerer_of_an_airflow_that_is_started_here_finds_the_trigger(tmp_path) -> None:
    settings = Settings(home=tmp_path, in_project=OURS)
    folders = folders_of(settings)
    folders.make()
    context = Context(
        settings=settings, folders=folders, ports=Ports(folders.run / "ports.json"), java_home=tmp_path,
        services=Services(),
    )  # fmt: skip

    done = subprocess.run(
        [sys.executable, "-c", "import twinlake.airflow.trigger"], cwd=tmp_path, capture_output=True,
        env={**os.environ, **airflow.environment(context)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()


def test_a_release_goes_from_plan_to_promote_through_the_approval(bag) -> None:
    flow = _flow(bag.dags["release"])

    assert flow == {
        "plan": {"build", "compare", "gate", "promote"},
        "build": {"compare"},
        "compare": {"gate"},
        "gate": {"approve"},
        "approve": {"promote"},
        "promote": set(),
    }


def test_batch_rebuilds_and_certifies_every_stored_table_certifies_the_views_and_says_so(bag) -> None:
    assert _flow(bag.dags["batch"]) == {
        "stored_tables": {"both.rebuild"},
        "views": {"certify_views"},
        "both.rebuild": {"both.certify"},
        "both.certify": {"summary"},
        "certify_views": {"summary"},
        "summary": set(),
    }


def test_a_backfill_ends_with_the_question_whether_anything_lay_in_its_range(bag) -> None:
    assert _flow(bag.dags["backfill"]) == {"chunks": {"rebuild"}, "rebuild": {"found"}, "found": set()}


def test_how_many_releases_are_kept_is_the_lake_server_s_choice_unless_it_is_said(bag) -> None:
    keep = bag.dags["maintain"].params.get_param("keep")

    assert keep.resolve() is None and keep.resolve(2) == 2
    assert f"{RetireParams().keep} unless given" in keep.description


def test_a_definition_that_is_wrong_takes_no_dag_away() -> None:
    code = "import sys; sys.modules['jobs.tables'] = None\n" + SPARK_FREE

    done = subprocess.run(
        [sys.executable, "-c", code.format(dags=str(PROJECT / "dags"), project=str(PROJECT))],
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()


def test_no_task_runs_a_shell_or_reads_the_run_configuration_in_a_template(bag) -> None:
    for dag in bag.dags.values():
        for task in dag.tasks:
            assert "Bash" not in task.task_type
            for name in task.template_fields:
                assert "dag_run.conf" not in str(getattr(task, name, ""))


@pytest.mark.parametrize("made", [timedelta(), timedelta(days=2)], ids=["a new lake", "a night was missed"])
def test_what_runs_every_night_does_not_run_when_a_lake_is_new(
    made: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = utcnow()
    monkeypatch.setenv("TWINLAKE_AIRFLOW_SINCE", format_moment(now - made))
    for make in (backup_dag, maintain_dag):
        stored = DagSerialization.from_dict(DagSerialization.to_dict(make()))
        first = stored.next_dagrun_info(last_automated_run_info=None)
        assert first is not None
        assert abs(first.run_after - now) <= timedelta(days=1) and (first.run_after > now) == (not made)
        second = stored.next_dagrun_info(last_automated_run_info=first)
        assert second is not None and second.run_after == first.run_after + timedelta(days=1)
