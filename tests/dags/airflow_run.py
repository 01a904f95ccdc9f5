"""Runs DAGs one after another with Airflow's own task runner and database; tells how each ended.

Arguments: a JSON list of [DAG id, its parameters] or [DAG id, its parameters, why it is rejected]. A question
to a person is answered by "Ada", through the API server's own handler, called without the server; by nobody
where that reason is null.
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
from airflow.models.asset import AssetEvent
from airflow.models.hitl import HITLDetail
from airflow.providers.standard.triggers import hitl
from airflow.sdk.execution_time.supervisor import InProcessTestSupervisor
from airflow.utils.session import create_session
from sqlalchemy import select

from twinlake.airflow import approval
from twinlake.airflow import trigger as lake_trigger

ADA = SimpleAuthManagerUser(username="Ada", role="admin")
lake_trigger.SETTLED_S = approval.SETTLED_S = 0  # here no scheduler has to note anything
api = InProcessTestSupervisor._api_client().hitl  # `test()` gives triggers no way to ask about an answer
hitl.get_hitl_detail_content_detail = lambda ti_id: api.get_detail_response(ti_id)
approval.update_hitl_detail_response = api.update_response
ended = threading.Event()
asked: list[str] = []
rejects: list[str | None] = []
"""Why the run under way is rejected; empty: it is approved; None: Ada is not there."""


def answer() -> None:
    while not ended.wait(0.5):
        with create_session() as session:
            for one in session.scalars(select(HITLDetail).where(HITLDetail.responded_at.is_(None))):
                task = one.task_instance
                if rejects == [None]:
                    continue
                if task.next_method is None:  # its state says nothing: `test()` has it in memory
                    continue  # it is about to ask
                asked.append(one.body or "")
                chosen = UpdateHITLDetailPayload(
                    chosen_options=["Reject" if rejects else "Approve"],
                    params_input={"reason": rejects[0] if rejects else None},
                )
                update_hitl_detail(task.dag_id, task.run_id, task.task_id, chosen, ADA, session)


def run(dag: str, params: dict[str, Any], *why: str | None) -> dict[str, Any]:
    rejects[:] = why
    done = DagBag(dag_folder="dags").dags[dag].test(run_conf=params)
    tasks = [[task.task_id, task.map_index, str(task.state)] for task in done.get_task_instances()]
    with create_session() as session:
        given = session.scalars(select(HITLDetail).where(HITLDetail.responded_at.is_not(None)))
        reasons = [one.params_input["reason"] for one in given]
    return {"state": str(done.state), "tasks": sorted(tasks), "reasons": reasons}


def events() -> list[list[str]]:
    """What has happened to which asset, in order."""
    with create_session() as session:
        found = session.scalars(select(AssetEvent).order_by(AssetEvent.id))
        return [[one.extra["event"], one.asset.uri] for one in found]


if __name__ == "__main__":
    person = threading.Thread(target=answer)
    person.start()
    try:
        told = [run(*one) for one in json.loads(sys.argv[1])]
    finally:
        ended.set()
        person.join()
    print(json.dumps({"runs": told, "asked": asked, "events": events()}))
