"""Whoever asks for an act, by whichever way, is in the audit log; what only looks is not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from twinlake.base.errors import FullDiskError
from twinlake.base.job import Asker, Job, Run
from twinlake.base.times import parse_moment, utc_now
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog.audit_log import Act, AuditLog, read_acts
from twinlake.lake.catalog.plans import Change, Plan, Plans
from twinlake.lake.catalog.release_log import Release, commit
from twinlake.lake.catalog.runs import Runs
from twinlake.server.api import build_app
from twinlake.server.job_kind import JobKind
from twinlake.server.job_models import Params
from twinlake.server.jobs import Jobs

ANNA = Asker(by="anna", via="cli", why="asked by sales")


class ReplayParams(Params):
    topic: str


@dataclass(frozen=True, kw_only=True)
class Done:
    def to_json(self) -> dict[str, Any]:
        return {}


KIND = JobKind(params=ReplayParams, handler=lambda lake, params, run: Done())
KINDS = {"replay": KIND, "diff": KIND}


class Server:
    """What the API needs of the lake server; its jobs wait for leave, and note who has asked."""

    def __init__(self, lake: Path) -> None:
        self.ready, self.lake_id, self.error = True, "lake", None
        self.audit, self.runs, self.askers = AuditLog(lake), Runs(lake), list[Asker]()
        self.go_on = threading.Event()
        self.jobs = Jobs(self.runs, self.audit, KINDS, self._do, utc_now)

    def _do(self, kind: JobKind, params: Any, run: Run) -> Done:
        self.askers.append(run.asker)
        while not self.go_on.wait(0.01):
            run.check_cancelled()
        return Done()

    def status(self) -> dict[str, Any]:
        return {}

    def ended(self) -> Act:
        """The newest act, once it has an outcome."""
        return wait_for(
            "the outcome", lambda: act if (act := self.audit.acts()[0]).outcome else None, 10, every_s=0.01
        )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    made.jobs.start()
    yield made
    made.go_on.set()


def test_an_act_is_there_before_it_has_begun_and_its_handler_knows_who_asks(server: Server) -> None:
    job = server.jobs.submit("replay", {"topic": "orders"}, asker=ANNA)
    (act,) = server.audit.acts()
    server.go_on.set()

    assert (act.who, act.via, act.why, act.what) == ("anna", "cli", ANNA.why, {"topic": "orders"})
    assert (act.job, act.outcome) == (job.id, None)
    assert server.ended().outcome == "succeeded" and server.askers == [ANNA]


def test_what_only_looks_is_no_act(server: Server) -> None:
    server.go_on.set()
    server.jobs.wait(server.jobs.submit("diff", {"topic": "orders"}, asker=ANNA).id, 10)
    assert server.audit.acts() == []


def test_the_same_key_is_the_same_act(server: Server) -> None:
    for _ in range(2):
        server.jobs.submit("replay", {"topic": "orders"}, "key", ANNA)
    assert len(server.audit.acts()) == 1


def test_who_cancels_is_there_too(server: Server) -> None:
    job = server.jobs.submit("replay", {"topic": "orders"}, asker=ANNA)
    server.jobs.cancel(job.id, Asker(by="ben", via="console"))
    server.jobs.wait(job.id, 10)
    server.jobs.cancel(job.id, ANNA)  # it has ended: nothing is done

    wait_for("the outcome", lambda: all(act.outcome for act in server.audit.acts()) or None, 10)
    assert [(act.act, act.who, act.outcome) for act in server.audit.acts()] == [
        ("cancel", "ben", "asked for"),
        ("replay", "anna", "cancelled"),
    ]


def test_a_server_that_was_killed_says_at_its_next_start_what_became_of_an_act(tmp_path: Path) -> None:
    killed = Server(tmp_path)
    killed.jobs.start()
    job = killed.jobs.submit("replay", {"topic": "orders"}, asker=ANNA)
    wait_for("the job", lambda: killed.askers or None, 10)
    next_one = Server(tmp_path)
    killed.jobs._ending = True
    killed.go_on.set()

    (act,) = next_one.audit.acts()
    assert (act.job, act.outcome) == (job.id, "interrupted")


def test_a_queued_act_is_begun_by_the_next_server_for_who_had_asked(tmp_path: Path) -> None:
    Server(tmp_path).jobs.submit("replay", {"topic": "orders"}, asker=ANNA)
    server = Server(tmp_path)
    server.go_on.set()
    server.jobs.start()

    assert server.ended().outcome == "succeeded" and server.askers == [ANNA]


def test_no_act_is_taken_that_cannot_be_written_down_and_a_cancel_is(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = server.jobs.submit("replay", {"topic": "orders"}, asker=ANNA)

    def full(rows: Any) -> None:
        raise FullDiskError("the disk is full", "", "")

    monkeypatch.setattr(server.audit._ledger, "append", full)
    with pytest.raises(FullDiskError):
        server.jobs.submit("replay", {"topic": "other"}, asker=ANNA)
    server.jobs.cancel(job.id, ANNA)

    assert server.jobs.wait(job.id, 10).state == "cancelled"
    assert [one.id for one in server.jobs.list()] == [job.id]


def test_the_api_takes_who_and_why_and_shows_the_acts(server: Server) -> None:
    server.go_on.set()
    web = TestClient(build_app(server, "secret"), headers={"Authorization": "Bearer secret"})
    asked = {"kind": "replay", "params": {"topic": "orders"}, "by": "anna", "via": "airflow", "why": "so"}
    job = web.post("/jobs", json=asked).json()
    server.ended()
    (act,) = web.get("/audit").json()

    assert (act["who"], act["via"], act["why"], act["job"], act["outcome"]) == (
        "anna", "airflow", "so", job["id"], "succeeded",
    )  # fmt: skip
    for wrong in ({"via": "telephone"}, {"by": ""}, {"why": "x" * 501}, {"who": "anna"}):
        assert web.post("/jobs", json={**asked, **wrong}).status_code == 400
    assert web.get("/audit", params={"limit": "0"}).status_code == 400


def test_who_cancels_a_query_is_written_down_and_read_by_others(server: Server, tmp_path: Path) -> None:
    app = build_app(server, "secret", lambda: parse_moment("2026-01-31T12:00:00Z"))
    web = TestClient(app, headers={"Authorization": "Bearer secret"})
    of = {"user": "ben", "endpoint": "jdbc", "sql": "x" * 400}
    asked = {**of, "by": "olga", "via": "console", "why": "so"}
    assert web.post("/audit/queries/0123abcd4567", json=asked).status_code == 200

    (act,) = read_acts(tmp_path)
    assert act == Act(
        at="2026-01-31T12:00:00Z", act="cancel", who="olga", via="console", why="so", job="0123abcd4567",
        what={"kind": "query", "user": "ben", "endpoint": "jdbc", "sql": f'"{"x" * 299}...'},
        outcome="asked for", ended_at="2026-01-31T12:00:00Z",
    )  # fmt: skip
    assert server.audit.open() == []
    for wrong in ({"endpoint": "ftp"}, {"user": ""}, {"by": ""}):
        assert web.post("/audit/queries/1", json={**asked, **wrong}).status_code == 400


def test_a_rotation_is_written_down_by_names_before_it_is_done(server: Server, tmp_path: Path) -> None:
    app = build_app(server, "secret", lambda: parse_moment("2026-01-31T12:00:00Z"))
    web = TestClient(app, headers={"Authorization": "Bearer secret"})
    asked = {"secrets": ["api_token", "sql_password"], "by": "olga", "via": "cli", "why": "so"}
    assert web.post("/audit/rotations", json=asked).status_code == 200

    (act,) = read_acts(tmp_path)
    assert (act.act, act.who, act.via, act.why, act.what, act.outcome) == (
        "rotate", "olga", "cli", "so", {"secrets": "api_token, sql_password"}, "asked for",
    )  # fmt: skip
    assert server.audit.open() == []
    for wrong in ({"secrets": []}, {"secrets": ["S3cret!"]}, {"secrets": ["a"] * 21}, {"token": "x"}):
        assert web.post("/audit/rotations", json={**asked, **wrong}).status_code == 400


def test_an_upgrade_and_its_way_back_are_written_down(server: Server, tmp_path: Path) -> None:
    app = build_app(server, "secret", lambda: parse_moment("2026-01-31T12:00:00Z"))
    web = TestClient(app, headers={"Authorization": "Bearer secret"})
    asked = {"change": "upgrade", "from": "0.0.9", "to": "0.1.0", "by": "olga", "via": "cli", "why": "so"}
    assert web.post("/audit/upgrades", json=asked).status_code == 200

    (act,) = read_acts(tmp_path)
    assert (act.act, act.who, act.why, act.what, act.outcome) == (
        "upgrade", "olga", "so", {"change": "upgrade", "from": "0.0.9", "to": "0.1.0"}, "asked for",
    )  # fmt: skip
    for wrong in ({"change": "down"}, {"from": 1}, {"from": "x" * 61}, {"token": "x"}):
        assert web.post("/audit/upgrades", json={**asked, **wrong}).status_code == 400


def test_what_switches_tables_names_them(tmp_path: Path) -> None:
    tables = {"same": "v1", "sales": "v1", "gone": "v1"}
    for number, of_it in enumerate((tables, {"same": "v1", "sales": "v2", "added": "v1"}), 1):
        commit(tmp_path, Release(
            number=number, kind="initial" if number == 1 else "promote", tables=of_it,
            created_at="2026-01-31T11:00:00Z", approved_by="anna",
        ))  # fmt: skip
    changes = [
        Change(table=table, action=action, fingerprint=None)  # type: ignore[arg-type]
        for table, action in [
            ("same", "unchanged"), ("sales", "changed"), ("added", "new"), ("gone", "removed"),
            ("other", "left out"),
        ]
    ]  # fmt: skip
    plan = Plan(id="c" * 12, release_before=1, changes=tuple(changes), definitions={}, created_at="")
    Plans(tmp_path).save(plan)
    log = AuditLog(tmp_path)
    asked = {
        "promote": {"plan": plan.id}, "rollback": {"to": None}, "plan": {"tables": ["sales"]},
        "build": {"tables": [f"table_{number}" for number in range(40)]},
        "reject": {"plan": "d" * 12}, "replay": {"topic": "orders"},
    }  # fmt: skip
    for kind, params in asked.items():
        log.asked(Job(id=kind, kind=kind, params=params), ANNA, "2026-01-31T12:00:00Z")

    about = {act.act: act.about for act in read_acts(tmp_path)}

    assert about == {
        "promote": ("sales", "added", "gone"), "rollback": ("added", "gone", "sales"), "plan": ("sales",),
        "reject": (), "replay": ("orders",), "build": tuple(f"table_{number}" for number in range(40)),
    }  # fmt: skip


def test_a_switch_that_a_kill_interrupted_names_the_release_that_it_had_made(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    made, lost = (Job(id=id, kind="rollback", params={"to": None}) for id in ("j1", "j2"))
    for job in (made, lost):
        log.asked(job, ANNA, "2026-01-31T12:00:00Z")
    commit(tmp_path, Release(
        number=1, kind="rollback", tables={"sales": "v1"}, created_at="2026-01-31T12:00:01Z",
        approved_by="anna", job="j1",
    ))  # fmt: skip
    for job in (made, lost):
        log.ended(replace(job, state="interrupted", ended_at="2026-01-31T12:01:00Z"))

    assert {act.job: act.outcome for act in log.acts()} == {
        "j1": "interrupted; release 1 was committed before", "j2": "interrupted",
    }  # fmt: skip


@pytest.mark.parametrize("by", [" ", "\n", "a\u202eb", ""])
def test_what_is_nobody_s_name_asks_for_nothing(server: Server, by: str) -> None:
    web = TestClient(build_app(server, "secret"), headers={"Authorization": "Bearer secret"})
    asked = {"kind": "replay", "params": {"topic": "orders"}, "by": by}
    assert web.post("/jobs", json=asked).status_code == 400 and server.audit.acts() == []


def test_a_changed_user_is_written_down(server: Server, tmp_path: Path) -> None:
    app = build_app(server, "secret", lambda: parse_moment("2026-01-31T12:00:00Z"))
    web = TestClient(app, headers={"Authorization": "Bearer secret"})
    asked = {"user": "ben", "change": "role", "role": "operator", "by": "olga", "via": "cli"}
    assert web.post("/audit/users", json=asked).status_code == 200

    (act,) = read_acts(tmp_path)
    assert (act.act, act.who, act.via, act.outcome) == ("users", "olga", "cli", "asked for")
    assert act.what == {"change": "role", "user": "ben", "role": "operator"}
    for wrong in ({"change": "rename"}, {"user": ""}, {"role": "king"}, {"password": "x"}):
        assert web.post("/audit/users", json={**asked, **wrong}).status_code == 400
