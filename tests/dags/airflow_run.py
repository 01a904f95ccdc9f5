"""Runs DAGs one after another with Airflow's own task runner and database; tells how each ended.

Arguments: a JSON list of [DAG id, its parameters]. A question to a person is answered with the first of its
options by "Ada", through the API server's own handler, called without the server.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.datamodels.hitl import UpdateHITLDetailPayload
from airflow.api_fastapi.core_api.routes.public.hitl import update_hitl_detail
from airflow.dag_processing.dagbag import DagBag
from airflow.models.hitl import HITLDetail
from airflow.utils.session import create_session
from airflow.utils.state import TaskInstanceState
from sqlalchemy import select

ADA = SimpleAuthManagerUser(username="Ada", role="admin")
ended = threading.Event()
asked: list[str] = []


def answer() -> None:
    while not ended.wait(0.5):
        with create_session() as session:
            for one in session.scalars(select(HITLDetail).where(HITLDetail.responded_at.is_(None))):
                task = one.task_instance
                if task.state != TaskInstanceState.AWAITING_INPUT:
                    continue  # it is about to ask
                asked.append(one.body or "")
                chosen = UpdateHITLDetailPayload(chosen_options=[one.options[0]])
                update_hitl_detail(task.dag_id, task.run_id, task.task_id, chosen, ADA, session)


def run(dag: str, params: dict[str, Any]) -> dict[str, Any]:
    done = DagBag(dag_folder="dags").dags[dag].test(run_conf=params)
    tasks = [[task.task_id, task.map_index, str(task.state)] for task in done.get_task_instances()]
    return {"state": str(done.state), "tasks": sorted(tasks)}


if __name__ == "__main__":
    person = threading.Thread(target=answer)
    person.start()
    try:
        told = [run(dag, params) for dag, params in json.loads(sys.argv[1])]
    finally:
        ended.set()
        person.join()
    print(json.dumps({"runs": told, "asked": asked}))
