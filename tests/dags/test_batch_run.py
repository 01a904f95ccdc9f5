"""The DAG `batch` run for real: Airflow's own task runner, a real lake server, broker and tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.settings import PROJECT
from tests.kill.server import LakeProcess, lake_process

pytestmark = pytest.mark.services

RUN = """
import json
from airflow.dag_processing.dagbag import DagBag
run = DagBag(dag_folder="dags").dags["batch"].test()
tasks = [[task.task_id, task.map_index, str(task.state)] for task in run.get_task_instances()]
print(json.dumps({"state": str(run.state), "tasks": sorted(tasks)}))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LakeProcess]:
    with lake_process(tmp_path) as made:
        yield made


def test_batch_rebuilds_and_certifies_every_table(server: LakeProcess, tmp_path: Path) -> None:
    server.start()
    server.release()
    server.produce(3_000)
    server.until(server.caught_up)
    assert {(one["name"], one["stored"], one["windows"]) for one in server.client.status()["tables"]} == {
        ("orders", False, False), ("latest_order", True, False), ("sales_per_region", True, True)
    }  # fmt: skip
    environ = {**os.environ, "AIRFLOW_HOME": str(tmp_path / "airflow"), "TWINLAKE_HOME": str(server.home)}
    environ["PYTHONPATH"] = str(PROJECT / "dags")  # Airflow's own processes have it on their path
    migrate = [sys.executable, "-m", "airflow", "db", "migrate"]
    subprocess.run(migrate, env=environ, cwd=PROJECT, check=True, capture_output=True, timeout=180)

    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environ, cwd=PROJECT, capture_output=True, text=True, timeout=300
    )

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    asked = [job for job in server.client.jobs() if (job.key or "").startswith("batch/")]
    assert told["state"] == "success"
    assert {state for _, _, state in told["tasks"]} == {"success"} and len(told["tasks"]) == 7
    assert {(job.kind, job.params["table"], job.succeeded()["equal"]) for job in asked} == {
        ("rebuild", "sales_per_region", True),
        ("rebuild", "latest_order", True),
        ("verify", "sales_per_region", True),
        ("verify", "latest_order", True),
        ("verify", "orders", True),
    }
