"""Airflow through its public REST API: trigger a DAG, answer an approval, wait for the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.demo.summary import DemoError
from twinlake.base.waiting import wait_for

SETTLED_SECONDS = 3.0
"""An answer in the first moments after a task began to wait makes the task fail."""
RUN_SECONDS = 600.0
"""A run that takes longer than this has gone wrong."""


class UnknownDagError(DemoError):
    """Airflow has not read the DAG's file yet."""


class AirflowApi:
    """One user's session; the token is renewed when it has run out."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._login = {"username": user, "password": password}
        self._http = httpx.Client(base_url=url.rstrip("/"), timeout=30, trust_env=False)

    def trigger(self, dag: str, conf: dict[str, Any] | None = None, patience_s: float = 60) -> str:
        """Start a run and return its id; a DAG that Airflow has not read yet is waited for."""

        def begin() -> str:
            answer = self._ask("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": conf or {}})
            if answer.status_code == 404:
                raise UnknownDagError(answer.text[:400])
            return str(self._told(answer)["dag_run_id"])

        return wait_for(
            f"Airflow to read DAG {dag}", begin, patience_s, every_s=1, unready=(UnknownDagError,),
            remedy="see `twinlake logs airflow-dag-processor`",
        )  # fmt: skip

    def first_run_over(self, dag: str, patience_s: float = 120) -> None:
        """Wait for the end of the run that the schedule has at once for a new Airflow."""

        def ended() -> bool | None:
            answer = self._ask("GET", f"/dags/{dag}/dagRuns?run_type=scheduled")
            runs = [] if answer.status_code == 404 else self._told(answer)["dag_runs"]
            return (bool(runs) and all(one["state"] in ("success", "failed") for one in runs)) or None

        wait_for(
            f"the end of the first scheduled run of DAG {dag}", ended, patience_s, every_s=0.5,
            remedy="see `twinlake logs airflow-scheduler`",
        )  # fmt: skip

    def run(self, dag: str, run: str) -> dict[str, Any]:
        return self._told(self._ask("GET", f"/dags/{dag}/dagRuns/{run}"))

    def tasks(self, dag: str, run: str) -> list[dict[str, Any]]:
        """The task instances of a run."""
        found = self._told(self._ask("GET", f"/dags/{dag}/dagRuns/{run}/taskInstances?limit=100"))
        instances: list[dict[str, Any]] = found["task_instances"]
        return instances

    def result(self, dag: str, run: str, task: str) -> Any:
        """What a task returned."""
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value?deserialize=true"
        return self._told(self._ask("GET", path)).get("value")

    def wait(
        self,
        dag: str,
        run: str,
        seen: Callable[[str, str], None] = lambda task, state: None,
        approve: str | None = None,
    ) -> list[dict[str, Any]]:
        """Follow a run to its end; `approve` names a task that is answered unless a person was first."""
        until = time.monotonic() + RUN_SECONDS
        shown: dict[tuple[str, int], str] = {}
        waiting_since: float | None = None
        while time.monotonic() < until:
            tasks = self.tasks(dag, run)
            for one in tasks:
                place = (one["task_id"], one["map_index"])
                if one["state"] and shown.get(place) != one["state"]:
                    shown[place] = one["state"]
                    seen(_label(one), one["state"])
            waits = any(one["task_id"] == approve and one["state"] == "deferred" for one in tasks)
            waiting_since = (waiting_since or time.monotonic()) if waits else None
            if approve and waiting_since and time.monotonic() - waiting_since >= SETTLED_SECONDS:
                if self._approve(dag, run, approve):
                    seen(approve, "approved through the REST API")
                waiting_since = None
            state = self.run(dag, run)["state"]
            if state == "success":
                return tasks
            if state == "failed":
                bad = ", ".join(_label(one) for one in self.tasks(dag, run) if one["state"] == "failed")
                raise DemoError(f"DAG {dag} failed in {bad or run}; see its task log in Airflow")
            time.sleep(0.5)
        raise DemoError(f"DAG {dag}, run {run}, did not end within {RUN_SECONDS:.0f} s")

    def _approve(self, dag: str, run: str, task: str) -> bool:
        """False when somebody has answered before."""
        answer = self._ask(
            "PATCH",
            f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/-1/hitlDetails",
            {"chosen_options": ["Approve"], "params_input": {}},
        )
        if answer.status_code == 409:
            return False
        self._told(answer)
        return True

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        for _ in range(2):
            answer = self._http.request(method, f"/api/v2{path}", json=body)
            if answer.status_code != 401:
                return answer
            token = self._told(self._http.post("/auth/token", json=self._login))["access_token"]
            self._http.headers["Authorization"] = f"Bearer {token}"
        return answer

    def _told(self, answer: httpx.Response) -> dict[str, Any]:
        if answer.is_error:
            raise DemoError(
                f"Airflow answered {answer.status_code} to {answer.request.url.path}: {answer.text[:400]}"
            )
        found: dict[str, Any] = answer.json()
        return found


def _label(instance: dict[str, Any]) -> str:
    mapped = instance.get("rendered_map_index") or instance["map_index"]
    return instance["task_id"] if instance["map_index"] < 0 else f"{instance['task_id']}[{mapped}]"
