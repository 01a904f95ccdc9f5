"""An Airflow of one's own runs the DAGs: PostgreSQL, LocalExecutor, of the project a folder and a connection.

The tests go on where the one before has ended: each is one state of the same two installations.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.dags.airflow_alone import airflow_alone
from tests.dags.installation import SALES, changed
from tests.dags.own_airflow import USER, OwnAirflow
from tests.kill.server import LakeProcess, lake_process
from tests.postgres import Postgres
from tests.project import OURS, TABLES
from tests.tls import certificate, tls_door
from twinlake.base.breakpoints import Point
from twinlake.base.job import Asker
from twinlake.base.times import format_moment, utc_now
from twinlake.cli import dags

pytestmark = [pytest.mark.services, pytest.mark.faults]

PREFIX = "shop_"
REPORTS = "https://data.example/twinlake"
CONSOLE = "https://console.example"


@dataclass(frozen=True, kw_only=True)
class Company:
    """A lake server in one place, an Airflow in another, and a door with TLS between them."""

    server: LakeProcess
    airflow: OwnAirflow
    door: int
    ca_file: Path

    def connection(self, **changed: Any) -> str:
        """What Airflow is to know of the lake server, through the door."""
        extra = {"ca_file": str(self.ca_file), "report_url": REPORTS, "console_url": CONSOLE}
        return json.dumps(
            {
                "conn_type": "generic", "host": "127.0.0.1", "port": self.door, "schema": "https",
                "password": self.server.services.api_token, "extra": extra, **changed,
            }
        )  # fmt: skip

    def live(self) -> dict[str, Any]:
        return dict(self.server.client.status()["release"] or {})


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    folder = tmp_path_factory.mktemp("company")
    dags.write(dags.dag_files(OURS.dags), folder / "bundle", prefix=PREFIX)
    database = Postgres()
    try:
        airflow = OwnAirflow(
            folder / "airflow", airflow_alone(folder / "venv"), folder / "bundle", database, PREFIX
        )  # fmt: skip
        trusted = certificate(folder)
        with lake_process(folder) as server, tls_door(server.port, trusted) as door:
            server.start()
            try:
                airflow.start()
                yield Company(server=server, airflow=airflow, door=door, ca_file=trusted[0])
            finally:
                airflow.stop()
    finally:
        database.stop()


def states(tasks: list[dict[str, Any]]) -> set[str]:
    return {one["state"] for one in tasks}


def refused_at_once(company: Company, said: str) -> None:
    """`maintain` fails in its first task, which was tried once, and its log says why."""
    state, tasks = company.airflow.run("maintain")

    (first,) = [one for one in tasks if one["task_id"] == "retire"]
    assert (state, first["state"], first["try_number"]) == ("failed", "failed", 1)
    heard = company.airflow.said("maintain")
    assert said in heard, heard[-6000:]


def test_without_a_connection_a_task_says_so_and_is_not_tried_again(company: Company) -> None:
    refused_at_once(company, "Airflow has no connection twinlake_default")


def test_a_wrong_token_fails_at_once_and_so_does_a_door_that_nobody_trusts(company: Company) -> None:
    airflow = company.airflow
    airflow.command(
        "connections",
        "add",
        "twinlake_default",
        "--conn-json",
        company.connection(password="of-another-lake"),
    )
    refused_at_once(company, "the token is missing or wrong")

    airflow.command("connections", "delete", "twinlake_default")
    airflow.command("connections", "add", "twinlake_default", "--conn-json", company.connection(extra={}))
    refused_at_once(company, "the certificate of the lake server's address is not trusted")


def test_the_first_release_is_of_the_definitions_beside_the_lake_server(company: Company) -> None:
    connections = company.airflow.folder.parent / "connections.json"
    connections.write_text(f'{{"twinlake_default": {company.connection()}}}')
    company.airflow.command("connections", "import", "--overwrite", str(connections))
    assert company.live() == {}

    state, tasks = company.airflow.run("release")

    assert (state, states(tasks)) == ("success", {"success"})
    assert set(company.live()["tables"]) == {table.name for table in TABLES}
    assert company.live()["approved_by"] == USER
    plan = company.live()["plan"]
    page = company.airflow.result("release", tasks[0]["dag_run_id"], "gate")
    assert f"[report]({REPORTS}/reports/{plan})" in page
    links = f"/dags/{PREFIX}release/dagRuns/{tasks[0]['dag_run_id']}/taskInstances/gate/links"
    told = company.airflow.api._ask("GET", links).json()
    assert told["extra_links"]["Report"] == f"{REPORTS}/reports/{plan}"
    assert told["extra_links"]["Twinlake"].startswith(f"{CONSOLE}/jobs?key=")


def test_batch_and_backfill_rebuild_and_certify(company: Company) -> None:
    company.server.produce(2_000)
    company.server.until(company.server.caught_up)
    hour = utc_now().replace(minute=0, second=0, microsecond=0)
    start, end = (format_moment(hour + timedelta(hours=hours)) for hours in (-2, 1))

    batch, of_batch = company.airflow.run("batch", windows="all")
    asked = {"table": SALES, "from": start, "to": end, "chunk_hours": 2}
    backfill, of_backfill = company.airflow.run("backfill", **asked)

    assert (batch, backfill, states(of_batch + of_backfill)) == ("success", "success", {"success"})
    certificates = {one["table"]: one for one in company.server.client.status()["certificates"]}
    assert set(certificates) == {table.name for table in TABLES}
    assert all(one["equal"] for one in certificates.values())
    done = [job for job in company.server.client.jobs() if (job.key or "").startswith(f"{PREFIX}backfill/")]
    assert len(done) == 2 and sum(job.succeeded()["rows_compared"] for job in done) > 0


def backfilled(company: Company, start: datetime) -> tuple[str, list[dict[str, Any]]]:
    """Airflow's own backfill of the quarter of an hour that begins there: the run's state, certificates."""
    airflow, moment = company.airflow, start.isoformat()
    asked = ("--from-date", moment, "--to-date", moment)
    airflow.command("backfill", "create", "--dag-id", f"{PREFIX}batch", *asked, "--max-active-runs", "1")
    runs = airflow.api._ask("GET", f"/dags/{PREFIX}batch/dagRuns?run_type=backfill").json()["dag_runs"]
    (run,) = [one["dag_run_id"] for one in runs if datetime.fromisoformat(one["logical_date"]) == start]
    state, _ = airflow.end("batch", run)
    mine = f"/backfills?dag_id={PREFIX}batch"
    company.server.until(  # Airflow has one backfill of a DAG at a time
        lambda: all(one["completed_at"] for one in airflow.api._ask("GET", mine).json()["backfills"]), 180
    )
    begins = f"{PREFIX}batch/{run}/"
    jobs = [job for job in company.server.client.jobs() if (job.key or "").startswith(begins)]
    return state, [{**job.succeeded()["certificate"], "covers": job.succeeded()["covers"]} for job in jobs]


def test_airflow_s_own_backfill_of_batch_certifies_exactly_the_windows_of_each_interval(
    company: Company,
) -> None:
    company.server.produce(2_000)
    company.server.until(company.server.caught_up)
    now = utc_now()
    start = now.replace(minute=now.minute // 15 * 15, second=0, microsecond=0) - timedelta(minutes=45)

    state, certificates = backfilled(company, start)
    before, none = backfilled(company, datetime(2026, 1, 2, tzinfo=UTC))

    covers = f"windows {format_moment(start)} to {format_moment(start + timedelta(minutes=15))}"
    assert state == "success"
    assert {(one["kind"], one["table"], one["covers"]) for one in certificates} == {
        ("rebuild", SALES, covers), ("verify", SALES, covers)
    }  # fmt: skip
    assert all(one["equal"] and one["rows_compared"] > 0 for one in certificates)
    assert before == "failed" and {one["rows_compared"] for one in none} == {0}
    said = company.airflow.said("batch")
    assert "left out, because they have no windows: latest_order, orders" in said
    assert "the first window of all tables begins at" in said


@pytest.mark.parametrize("end", ["failed", "cleared"])
def test_who_ends_a_task_in_airflow_cancels_its_job_and_a_restart_of_airflow_does_not(
    company: Company, end: str
) -> None:
    server, airflow = company.server, company.airflow
    server.stop_at(Point.BEFORE_REPLACE, SALES)
    other = server.client.submit("rebuild", {"table": SALES})  # the job of the task has to wait for it
    server.until_stopped_at(Point.BEFORE_REPLACE)
    hour = utc_now().replace(minute=0, second=0, microsecond=0)
    start, finish = (format_moment(hour + timedelta(hours=hours)) for hours in (-2, 1))
    run = airflow.begin("backfill", **{"table": SALES, "from": start, "to": finish, "chunk_hours": 3})

    def jobs() -> list[str]:
        begins = f"{PREFIX}backfill/{run}/"
        return [job.state for job in reversed(server.client.jobs()) if (job.key or "").startswith(begins)]

    server.until(lambda: jobs() == ["running"], 180)
    (before,) = [one for one in airflow.tasks("backfill", run) if one["task_id"] == "rebuild"]
    waited = airflow.said("backfill").count("rebuild is job")
    airflow.start()
    server.until(lambda: airflow.said("backfill").count("rebuild is job") > waited, 180)
    assert (before["state"], jobs()) == ("deferred", ["running"])

    airflow.set_state("backfill", run, "rebuild", end)
    server.until(lambda: jobs()[0] == "cancelled", 180)

    server.let_go(Point.BEFORE_REPLACE)
    assert server.client.follow(other.id).state == "succeeded"
    assert airflow.end("backfill", run)[0] == ("success" if end == "cleared" else "failed")
    assert jobs() == (["cancelled", "succeeded"] if end == "cleared" else ["cancelled"])


def approval_waits(company: Company, run: str) -> bool:
    """Whether the run has come so far."""
    tasks = company.airflow.tasks("release", run)
    return any((one["task_id"], one["state"]) == ("approve", "deferred") for one in tasks)


def test_a_plan_that_is_promoted_elsewhere_is_the_answer_to_what_waits_and_buttons_lead_to_the_console(
    company: Company,
) -> None:
    """By Airflow's own triggerer; before it, one that is rejected."""
    airflow, lake, before = company.airflow, company.server.client, company.live()
    ended: dict[str, tuple[str, list[dict[str, Any]]]] = {}
    for kind, decision in (
        ("reject", {"rejected_by": "carol", "reason": "too few rows"}), ("promote", {"approved_by": "carol"})
    ):  # fmt: skip
        run = airflow.begin("release", definitions=changed("amount > 3"))
        company.server.until(lambda run=run: approval_waits(company, run), 300)  # type: ignore[misc]
        plan = lake.status()["waiting"]["plan"]
        asker = Asker(by="carol", via="console", why="as agreed")
        lake.follow(lake.submit(kind, {"plan": plan, **decision}, f"elsewhere/{kind}", asker).id).succeeded()
        company.server.until(lambda run=run: not approval_waits(company, run), 120)  # type: ignore[misc]
        ended[kind] = airflow.end("release", run)
        links = {task: airflow.links("release", run, task) for task in ("build", "gate", "approve")}
        assert links["approve"] == {"Twinlake": f"{CONSOLE}/plans/{plan}"}
        assert links["build"]["Twinlake"].startswith(f"{CONSOLE}/jobs?key={PREFIX}release%2F")
        assert links["gate"]["Report"] == f"{REPORTS}/reports/{plan}"

    assert ended["reject"][0] == "failed"
    assert "carol rejected it: too few rows. Nothing was made live" in airflow.said("release")
    assert ended["promote"][0] == "success" and states(ended["promote"][1]) == {"success"}
    live = company.live()
    assert (live["number"], live["approved_by"]) == (before["number"] + 1, "carol")


def test_a_connection_of_the_environment_serves_as_well(company: Company) -> None:
    """Through no door: to the very port of the lake server, as at the end of an ssh tunnel."""
    company.airflow.command("connections", "delete", "twinlake_default")
    plain = company.connection(port=company.server.port, schema="http", extra={})
    company.airflow.start(AIRFLOW_CONN_TWINLAKE_DEFAULT=plain)
    before = company.live()

    release, of_release = company.airflow.run("release", definitions=changed())
    released = company.live()
    rollback, of_rollback = company.airflow.run("rollback", reason="too few orders")
    back = company.live()

    assert (release, rollback) == ("success", "success")
    assert states(of_release + of_rollback) == {"success"}
    assert released["number"] == before["number"] + 1
    assert released["tables"][SALES] != before["tables"][SALES]
    assert (back["number"], back["tables"]) == (released["number"] + 1, before["tables"])
    assert (released["approved_by"], back["approved_by"]) == (USER, USER)
    assert back["reason"] == "too few orders"
    page = company.airflow.result("release", of_release[0]["dag_run_id"], "gate")
    assert "where the lake server runs" in page


def test_a_release_that_nobody_approves_stops_no_other_and_is_refused_once_that_is_live(
    company: Company,
) -> None:
    airflow, before = company.airflow, company.live()
    waiting = airflow.begin("release", definitions=changed("amount > 1"))
    company.server.until(lambda: approval_waits(company, waiting), 300, every_s=1)

    state, _ = airflow.run("release", definitions=changed("amount > 2"))
    live = company.live()
    late, tasks = airflow.end("release", waiting)

    assert (state, live["number"]) == ("success", before["number"] + 1)
    assert (late, company.live()) == ("failed", live)
    (promote,) = [one for one in tasks if one["task_id"] == "promote"]
    assert promote["state"] == "failed"


def test_a_lake_server_that_is_killed_in_the_middle_is_waited_for_and_does_its_job_once(
    company: Company,
) -> None:
    before = company.live()
    company.airflow.run("release", definitions=changed(), tables=[SALES])  # it may have been rolled back
    released = company.live()
    company.server.stop_at(Point.AFTER_RELEASE)
    run = company.airflow.begin("rollback")
    company.server.until_stopped_at(Point.AFTER_RELEASE)

    company.server.kill()
    company.server.start()
    state, tasks = company.airflow.end("rollback", run)

    assert (state, states(tasks)) == ("success", {"success"})
    assert company.live()["number"] == released["number"] + 1
    assert company.live()["tables"] == before["tables"] != released["tables"]


def test_replay_maintain_and_a_release_that_changes_nothing_run(company: Company) -> None:
    replay, of_replay = company.airflow.run("replay", topic="orders")
    maintain, of_maintain = company.airflow.run("maintain", keep=1)
    company.airflow.run("release")  # of the definitions beside the lake server: others may be live
    again, of_again = company.airflow.run("release")

    assert (replay, maintain, again) == ("success",) * 3
    assert states(of_replay + of_maintain) == {"success"}
    assert states(of_again) == {"skipped"}


def test_what_can_never_be_planned_fails_at_once_with_the_reason(company: Company) -> None:
    state, tasks = company.airflow.run("release", definitions={"t": {"kind": "nothing"}})

    (plan,) = [one for one in tasks if one["task_id"] == "plan"]
    assert (state, plan["state"], plan["try_number"]) == ("failed", "failed", 1)
    assert "unknown table kind" in company.airflow.said("release")


def test_the_token_is_in_no_log_no_table_and_no_page_of_airflow(company: Company) -> None:
    token = company.server.services.api_token
    assert len(company.airflow.said("release")) > 1_000

    assert company.airflow.told_of(token) == []
    assert company.airflow.told_of("twinlake_default") != []  # what is looked for would be found
