"""What the demo waits for, and what it says when that does not come."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.demo.airflow_api import AirflowApi
from tests.demo.crash import wait_back
from tests.demo.lake_view import LakeView
from tests.demo.summary import DemoError
from twinlake.base.errors import TimedOutError
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.supervise import record
from twinlake.services.supervise.process import identity_of

ENDS = {0: 10, 1: 20}


class Lake(LakeView):
    """A lake server that always says the same."""

    def __init__(self, end: int, position: int, stalled: bool = False) -> None:
        self._status = {
            "topics": [{"name": "orders", "batch": 7, "ends": {"0": 10, "1": end}}],
            "versions": [
                {
                    "table": "sales",
                    "position": {"orders": position},
                    "stalled": stalled,
                    "error": "cannot go on",
                }
            ],
        }

    def status(self) -> dict[str, Any]:
        return self._status


def test_tables_have_caught_up_at_the_batch_that_ends_the_log() -> None:
    assert Lake(end=20, position=7).caught_up("orders", ENDS, patience_s=0) == 7


def test_a_log_that_stays_behind_is_shown() -> None:
    with pytest.raises(DemoError, match=r"the log of orders did not reach .* within 0 s: .*'1': 19"):
        Lake(end=19, position=7).caught_up("orders", ENDS, patience_s=0)


def test_a_table_that_stays_behind_is_shown() -> None:
    with pytest.raises(DemoError, match=r"tables did not reach batch 7 within 0 s: .*{'orders': 6}"):
        Lake(end=20, position=6).caught_up("orders", ENDS, patience_s=0)


def test_a_stalled_table_is_not_waited_for() -> None:
    with pytest.raises(DemoError, match="sales is stalled: cannot go on"):
        Lake(end=20, position=6, stalled=True).caught_up("orders", ENDS, patience_s=600)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    found = Settings(home=tmp_path)
    folders_of(found).make()
    return found


def test_a_part_is_back_when_another_process_of_it_is_ready(settings: Settings) -> None:
    pid = os.getpid()
    record.save(folders_of(settings), record.Record(part="lake", state="ready", identity=identity_of(pid)))

    wait_back(settings, "lake", pid=pid + 1, patience_s=0)
    with pytest.raises(TimedOutError) as caught:
        wait_back(settings, "lake", pid=pid, patience_s=0)

    assert caught.value.remedy == "see `twinlake logs lake`"


def _airflow(answer: httpx.Response) -> AirflowApi:
    api = AirflowApi("http://airflow", "admin", "secret")
    api._http = httpx.Client(base_url="http://airflow", transport=httpx.MockTransport(lambda request: answer))
    return api


def test_a_dag_that_airflow_has_not_read_in_time_is_named_with_its_answer() -> None:
    with pytest.raises(TimedOutError) as caught:
        _airflow(httpx.Response(404, text="no DAG batch")).trigger("batch", patience_s=0)

    assert "Airflow to read DAG batch" in caught.value.what
    assert "no DAG batch" in caught.value.why


def test_a_dag_that_airflow_refuses_is_not_waited_for() -> None:
    with pytest.raises(DemoError, match=r"Airflow answered 400 .* no such parameter"):
        _airflow(httpx.Response(400, text="no such parameter")).trigger("batch", patience_s=600)


def test_the_first_scheduled_run_is_waited_for_until_it_has_ended() -> None:
    def runs(*states: str) -> AirflowApi:
        return _airflow(httpx.Response(200, json={"dag_runs": [{"state": state} for state in states]}))

    runs("success", "failed").first_run_over("batch", patience_s=0)
    for api in (runs(), runs("success", "running"), _airflow(httpx.Response(404, text="no DAG batch"))):
        with pytest.raises(TimedOutError):
            api.first_run_over("batch", patience_s=0)
