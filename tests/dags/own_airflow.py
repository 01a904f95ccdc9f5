"""An Airflow as a company has one: PostgreSQL, LocalExecutor, other packages than ours; four processes.

It knows of the project only what it is given: a folder of DAGs, and connections.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
from cryptography.fernet import Fernet

from tests.broker import free_port
from tests.demo.airflow_api import AirflowApi
from tests.demo.summary import DemoError
from tests.postgres import Postgres
from twinlake.base.waiting import wait_for

COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")
LOCAL_BUNDLE = "airflow.dag_processing.bundles.local.LocalDagBundle"
AUTH = "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
USER = "ada"


class OwnAirflow:
    """`python` has Airflow alone, `dags` is the folder that it is given, `prefix` that of the DAGs' names."""

    def __init__(self, folder: Path, python: Path, dags: Path, database: Postgres, prefix: str) -> None:
        self.folder, self._python, self.database = folder, python, database
        self._prefix, self._dags = prefix, dags
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir()
        password, port = secrets.token_urlsafe(12), free_port()
        (folder / "passwords.json").write_text(json.dumps({USER: password}))
        url = f"http://127.0.0.1:{port}"
        bundle = {"name": "twinlake", "classpath": LOCAL_BUNDLE, "kwargs": {"path": str(dags)}}
        settings = {
            "API__BASE_URL": url,
            "API__HOST": "127.0.0.1",
            "API__PORT": str(port),
            "API__SECRET_KEY": secrets.token_hex(32),
            "API__WORKERS": "1",
            "API_AUTH__JWT_SECRET": secrets.token_hex(48),
            "CORE__AUTH_MANAGER": AUTH,
            "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__FERNET_KEY": Fernet.generate_key().decode(),
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__PARALLELISM": "4",
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folder / "passwords.json"),
            "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps([bundle]),
            "DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "DATABASE__SQL_ALCHEMY_CONN": database.url,
            "LOGGING__BASE_LOG_FOLDER": str(folder / "logs"),
            "SCHEDULER__ENABLE_HEALTH_CHECK": "False",
            "USAGE_DATA_COLLECTION__ENABLED": "False",
        }
        self._environ = {
            "AIRFLOW_HOME": str(folder), "HOME": str(folder), "NO_COLOR": "1", "LC_ALL": "C.UTF-8",
            "PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin",
            **{f"AIRFLOW__{name}": value for name, value in settings.items()},
        }  # fmt: skip
        self.url, self.api = url, AirflowApi(url, USER, password)
        self.api._http.timeout = httpx.Timeout(180)  # how long it takes says how busy the host is
        self.command("db", "migrate")
        self.command("pools", "import", str(dags / "pools.json"))

    def command(self, *arguments: str) -> str:
        """`airflow ...`, to its end."""
        done = subprocess.run(
            [str(self._python), "-m", "airflow", *arguments], env=self._environ, cwd=self.folder,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def start(self, **more: str) -> None:
        """All components, with these variables in their environment besides; those of before end first."""
        self.stop()
        for component in COMPONENTS:
            quiet = ("--skip-serve-logs",) if component in ("scheduler", "triggerer") else ()
            with (self.folder / f"{component}.log").open("ab") as out:
                self._processes[component] = subprocess.Popen(
                    [str(self._python), "-m", "airflow", component, *quiet], cwd=self.folder,
                    env={**self._environ, **more, **self._imports(component)}, stdout=out, stderr=out,
                    start_new_session=True,
                )  # fmt: skip
        wait_for("Airflow", self._healthy, 300, every_s=1, unready=(httpx.HTTPError, ValueError))

    def _imports(self, component: str) -> dict[str, str]:
        """docs/airflow.md: the triggerer alone imports from the folder by name."""
        return {"PYTHONPATH": str(self._dags)} if component == "triggerer" else {}

    def stop(self) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(process.pid, signal.SIGKILL)  # and what it has left
            except ProcessLookupError:
                pass
            process.wait()
        self._processes.clear()

    def begin(self, dag: str, **conf: Any) -> str:
        """The id of a new run."""
        return self.api.trigger(f"{self._prefix}{dag}", conf, patience_s=300)

    def end(self, dag: str, run: str) -> tuple[str, list[dict[str, Any]]]:
        """The run to its end, a question answered with yes by Ada: its state and its tasks."""
        name = f"{self._prefix}{dag}"
        with suppress(DemoError):  # of a run that has failed
            self.api.wait(name, run, approve="approve")
        state = self.api.run(name, run)["state"]
        assert state in ("success", "failed"), (state, self.said(dag)[-5000:])
        return state, self.api.tasks(name, run)

    def run(self, dag: str, **conf: Any) -> tuple[str, list[dict[str, Any]]]:
        """A new run to its end."""
        return self.end(dag, self.begin(dag, **conf))

    def tasks(self, dag: str, run: str) -> list[dict[str, Any]]:
        return self.api.tasks(f"{self._prefix}{dag}", run)

    def set_state(self, dag: str, run: str, task: str, state: str) -> None:
        """As a person does on the page of a task: "failed", or "cleared"."""
        name = f"{self._prefix}{dag}"
        if state == "cleared":
            asked = {"dry_run": False, "dag_run_id": run, "task_ids": [task], "only_failed": False}
            answer = self.api._ask("POST", f"/dags/{name}/clearTaskInstances", asked)
        else:
            path = f"/dags/{name}/dagRuns/{run}/taskInstances/{task}/0"
            answer = self.api._ask("PATCH", path, {"new_state": state})
        assert answer.is_success, answer.text

    def result(self, dag: str, run: str, task: str) -> Any:
        """What a task returned."""
        return self.api.result(f"{self._prefix}{dag}", run, task)

    def links(self, dag: str, run: str, task: str) -> dict[str, str | None]:
        """The buttons of a task, and where they lead."""
        path = f"/dags/{self._prefix}{dag}/dagRuns/{run}/taskInstances/{task}/links"
        found: dict[str, str | None] = self.api._told(self.api._ask("GET", path))["extra_links"]
        return found

    def said(self, dag: str) -> str:
        """What the tasks of a DAG have logged."""
        files = sorted(self.folder.glob(f"logs/dag_id={self._prefix}{dag}/**/*.log"))
        return "\n".join(file.read_text() for file in files)

    def told_of(self, secret: str) -> list[str]:
        """Where a word is found: in which files of its folder, and in which tables of its database."""
        written = (file for file in self.folder.rglob("*") if file.is_file())
        files = [str(file) for file in written if secret.encode() in file.read_bytes()]
        tables = self.database.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        found = [
            str(name)
            for (name,) in tables
            if self.database.rows(f"SELECT 1 FROM {name} AS t WHERE strpos(t::text, '{secret}') > 0 LIMIT 1")
        ]
        return files + found

    def _healthy(self) -> bool | None:
        for component, process in self._processes.items():
            log = self.folder / f"{component}.log"
            assert process.poll() is None, f"{component} has ended: {log.read_text()[-3000:]}"
        health = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=30, trust_env=False).json()
        names = ("metadatabase", "scheduler", "dag_processor", "triggerer")
        return True if all(health[name]["status"] == "healthy" for name in names) else None
