"""A lake server, and an Airflow whose home belongs to it: DAGs run in Airflow's own task runner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.kill.server import LakeProcess
from tests.project import PROJECT, TABLES

SALES = "sales_per_region"


class Installation:
    """A lake server with the project's tables live, and an Airflow whose home belongs to it."""

    def __init__(self, server: LakeProcess, airflow: Path) -> None:
        self.server = server
        self._environ = {
            **os.environ, "AIRFLOW_HOME": str(airflow), "TWINLAKE_HOME": str(server.home),
            "PYTHONPATH": str(PROJECT / "dags"),  # Airflow's own processes have it on their path
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        }  # fmt: skip
        self._airflow("-m", "airflow", "db", "migrate")

    def run(
        self, *dags: tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], str | None]
    ) -> dict[str, Any]:
        """The DAGs with their parameters, one after another; `runs` and what people were `asked`."""
        done = self._airflow("tests/dags/airflow_run.py", json.dumps(dags))
        told: dict[str, Any] = json.loads(done.splitlines()[-1])
        return told

    def jobs(self, dag: str) -> dict[tuple[str, str], dict[str, Any]]:
        """By kind and table, the result of the last job that this DAG asked for."""
        asked = [job for job in self.server.client.jobs() if (job.key or "").startswith(f"{dag}/")]
        asked.sort(key=lambda job: job.created_at)
        return {(job.kind, job.params.get("table", "")): job.succeeded() for job in asked}

    def live(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.client.status()["release"]
        return found

    def _airflow(self, *command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            env=self._environ,
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout


def states(run: dict[str, Any]) -> set[str]:
    return {run["state"], *(state for _, _, state in run["tasks"])}


def changed(where: str = "status = 'paid'") -> dict[str, Any]:
    """The definitions, one of them with another condition."""
    definitions = {table.name: table.to_json() for table in TABLES}
    definitions[SALES]["where"] = where
    return definitions
