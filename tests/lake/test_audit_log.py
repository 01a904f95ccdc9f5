"""The audit log: written before an act is taken, kept whole, found again after a kill."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from twinlake.base.job import Asker, Job
from twinlake.lake.catalog import audit_log
from twinlake.lake.catalog.audit_log import Act, AuditLog, is_act
from twinlake.lake.delta import ledger

ANNA = Asker(by="anna", via="console", why="the new prices are right")
PROMOTE = Job(id="j1", kind="promote", params={"plan": "abc", "approved_by": "ben", "unwitnessed": []})


def ended(job: Job, state: str = "succeeded", error: dict[str, str] | None = None) -> Job:
    return replace(job, state=state, error=error, ended_at="2026-01-31T12:00:09Z")  # type: ignore[arg-type]


def test_an_act_has_who_by_which_way_why_what_and_how_it_ended(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.asked(PROMOTE, ANNA, "2026-01-31T12:00:00Z")
    before = AuditLog(tmp_path).acts()
    log.ended(ended(PROMOTE))

    act = Act(
        at="2026-01-31T12:00:00Z", act="promote", who="anna", via="console", why=ANNA.why, job="j1",
        what={"plan": "abc", "approved_by": "ben"},
    )  # fmt: skip
    assert before == [act] and audit_log.read_acts(tmp_path / "none") == []
    assert AuditLog(tmp_path).acts() == [replace(act, outcome="succeeded", ended_at="2026-01-31T12:00:09Z")]


def test_who_does_not_say_so_is_whom_the_job_names_or_unnamed(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.asked(PROMOTE, Asker(), "1")
    log.asked(Job(id="j2", kind="replay", params={"topic": "orders"}), Asker(), "2")

    assert [(one.who, one.via) for one in log.acts()] == [("unnamed", "api"), ("ben", "api")]
    assert log.asker(Job(id="j2", kind="replay", params={})) == Asker()  # nobody is not somebody called so


def test_the_reason_of_a_job_is_that_of_the_act(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.asked(Job(id="j", kind="rollback", params={"reason": "wrong"}), Asker(by="anna"), "1")
    assert log.acts()[0].why == "wrong"


def test_a_job_that_failed_says_what_and_a_second_attempt_is_an_act_of_its_own(tmp_path: Path) -> None:
    log, again = AuditLog(tmp_path), replace(PROMOTE, attempt=2)
    log.asked(PROMOTE, ANNA, "1")
    log.ended(ended(PROMOTE, "failed", {"what": "the gate refuses it"}))
    log.asked(again, ANNA, "2")
    log.ended(ended(again))

    assert [one.outcome for one in log.acts()] == ["succeeded", "failed: the gate refuses it"]


def test_two_who_cancel_one_job_are_two_acts(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    for by in ("anna", "ben"):
        log.cancelled(PROMOTE, Asker(by=by), "1")
    assert [(one.act, one.who, one.job) for one in log.acts()] == [
        ("cancel", "ben", "j1"),
        ("cancel", "anna", "j1"),
    ]


def test_many_definitions_are_kept_as_their_names(tmp_path: Path) -> None:
    definitions = {name: {"where": "x" * 400} for name in ("b", "a")}
    log = AuditLog(tmp_path)
    log.asked(Job(id="j", kind="plan", params={"definitions": definitions}), ANNA, "1")
    assert log.acts()[0].what == {"definitions": ["a", "b"]}


def test_what_a_kill_left_open_is_known_to_the_next_server_with_who_asked(tmp_path: Path) -> None:
    AuditLog(tmp_path).asked(PROMOTE, ANNA, "1")
    log = AuditLog(tmp_path)

    assert [one.job for one in log.open()] == ["j1"]
    assert log.asker(PROMOTE) == ANNA
    log.ended(ended(PROMOTE, "interrupted"))
    log.ended(ended(PROMOTE))  # a second time says nothing new
    assert AuditLog(tmp_path).open() == [] and log.acts()[0].outcome == "interrupted"


def test_compaction_keeps_every_entry(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    for number in range(ledger.COMPACT_ABOVE_FILES // 2 + 1):
        job = Job(id=f"j{number}", kind="replay", params={})
        log.asked(job, ANNA, "1")
        log.ended(ended(job))
    before = log.acts()
    files = len(list((tmp_path / "audit").glob("*.parquet")))
    log.compact()
    assert audit_log.read_acts(tmp_path) == before

    assert len(before) == ledger.COMPACT_ABOVE_FILES // 2 + 1 and AuditLog(tmp_path).acts() == before
    log.asked(PROMOTE, ANNA, "2")
    assert AuditLog(tmp_path).acts()[0].act == "promote" and files > ledger.COMPACT_ABOVE_FILES


def test_what_the_schedule_does_and_what_only_looks_are_no_acts() -> None:
    assert is_act("rebuild", {"table": "t"}) and not is_act("rebuild", {"table": "t", "due": True})
    due, by_hand = {"table": "t", "due": True}, Asker(by="anna", via="cli")
    assert is_act("rebuild", due, by_hand) and is_act("rebuild", due, Asker(by="anna", via="airflow"))
    assert not is_act("rebuild", due, Asker(by="airflow", via="airflow"))
    assert not is_act("reload", {"check": True}, by_hand)
    assert is_act("reload", {}) and not is_act("reload", {"check": True})
    assert not is_act("diff", {}) and not is_act("maintain", {})
    assert is_act("verify", {"table": "t", "due": True, "repair": True})  # it replaces what readers see
    assert is_act("gate", {"plan": "p", "unwitnessed": ["t=so"]}) and not is_act("gate", {"plan": "p"})


def test_every_kind_of_job_that_is_an_act_is_one_of_the_lake_server() -> None:
    from twinlake.server.all_jobs import KINDS

    looks = {"check", "diff", "gate", "maintain", "sample"}
    assert set(KINDS) == audit_log.ACTS | looks
