"""Which conditions there are: each alarm from one figure that is not well, and none where all is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.alarms.figures import CERTIFICATE, NOW, PART, STATUS, TOPIC, VERSION, WELL, of_status
from tests.project import PROJECT
from twinlake.alarms.alarm import KINDS, Condition
from twinlake.alarms.conditions import Disk, Figures, conditions
from twinlake.base.errors import TwinlakeError, UnreachableError
from twinlake.config.alarms import Alarms
from twinlake.topics.promises import Promise

BACKUP: dict[str, Any] = STATUS["backup"]
ERROR = {"what": "it stopped", "why": "because", "remedy": "look"}
DAMAGED = {**ERROR, "file": "f"}


def found(seen: Figures, promises: dict[str, Promise] | None = None, **bounds: Any) -> list[Condition]:
    return list(conditions(seen, promises or {}, Alarms(**bounds), NOW))


def kinds(seen: Figures, promises: dict[str, Promise] | None = None, **bounds: Any) -> list[tuple[str, str]]:
    return [(one.kind, one.title) for one in found(seen, promises, **bounds)]


def test_where_all_is_well_there_is_none() -> None:
    assert found(WELL) == []


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (replace(WELL, parts=[{**PART, "answers": False, "answer": "no route"}]), ("service", "lake")),
        (replace(WELL, parts=[{**PART, "error": ERROR}]), ("service", "lake")),
        (replace(WELL, supervisor=TwinlakeError("it is gone")), ("service", "supervisor")),
        (replace(WELL, restarts={"lake": 3}), ("restarts", "lake")),
        (replace(WELL, disk=Disk(free=4 << 30, total=100 << 30)), ("disk", "disk")),
        (replace(WELL, disk=Disk(free=1 << 29, total=1 << 32)), ("disk", "disk")),
        (replace(WELL, status=None, error=UnreachableError("it hangs")), ("unknown", "lake server")),
        (of_status(topics=[{**TOPIC, "error": ERROR}]), ("stopped", "topic orders")),
        (of_status(topics=[{**TOPIC, "warnings": [ERROR]}]), ("topic", "topic orders")),
        (of_status(versions=[{**VERSION, "stalled": True, "error": ERROR}]), ("stalled", "sales v-1")),
        (of_status(certificates=[{**CERTIFICATE, "equal": False}]), ("unequal", "sales v-1")),
        (
            of_status(certificates=[{**CERTIFICATE, "disputed": True, "proof": "DuckDB differs"}]),
            ("unequal", "sales v-1"),
        ),
        (of_status(damaged=[{**ERROR, "file": "f"}]), ("damaged", "lake")),
        (
            of_status(versions=[{**VERSION, "stalled": True, "error": DAMAGED}]),
            ("damaged", "sales v-1"),
        ),
        (
            replace(WELL, parts=[{**PART, "service": "sql"}], nobody_let_in=TwinlakeError("no users")),
            ("service", "users"),
        ),
        (of_status(changelogs=[{"table": "sales", "error": ERROR}]), ("stalled", "changelog of sales")),
        (of_status(spark={"error": ERROR}), ("service", "spark")),
        (replace(WELL, refused={"orders": (6, 100)}), ("quarantine", "topic orders")),
        (of_status(versions=[{**VERSION, "lag_seconds": 301.0}]), ("freshness", "sales")),
        (of_status(topics=[{**TOPIC, "lag_seconds": 301.0, "lag_records": 5}]), ("freshness", "sales")),
        (
            of_status(waiting={"plan": "p", "since": "2026-01-31T11:49:00Z", "tables": ["sales"]}),
            ("approval", "plan p"),
        ),
        (
            of_status(certificates=[{**CERTIFICATE, "created_at": "2026-01-30T09:59:00Z"}]),
            ("certificate", "sales"),
        ),
        (of_status(backup={**BACKUP, "newest": "2026-01-29T11:59:00Z"}), ("backup", "backup")),
        (of_status(backup={**BACKUP, "newest": None, "since": "2026-01-29T11:59:00Z"}), ("backup", "backup")),
        (of_status(backup={**BACKUP, "failed": ERROR}), ("backup", "backup")),
    ],
)
def test_each_alarm_has_its_one_condition(seen: Figures, expected: tuple[str, str]) -> None:
    assert kinds(seen) == [expected]
    (one,) = found(seen)
    assert one.what and one.kind in KINDS


@pytest.mark.parametrize(
    "seen",
    [
        replace(WELL, restarts={"lake": 2}),
        replace(WELL, refused={"orders": (5, 100)}),
        replace(WELL, refused={"orders": (10, 19)}),
        of_status(versions=[{**VERSION, "lag_seconds": 299.0}]),
        of_status(versions=[{**VERSION, "version": "v-0", "lag_seconds": 999.0}]),
        of_status(waiting={"plan": "p", "since": "2026-01-31T11:51:00Z", "tables": ["sales"]}),
        of_status(certificates=[{**CERTIFICATE, "created_at": "2026-01-30T10:01:00Z"}]),
        of_status(certificates=[]),
        of_status(backup={**BACKUP, "newest": "2026-01-29T12:01:00Z"}),
        of_status(backup={**BACKUP, "newest": None, "since": "2026-01-29T12:01:00Z"}),
        of_status(backup={**BACKUP, "newest": None}),
        of_status(backup=None),
        of_status(versions=[VERSION, {**VERSION, "version": "v-0", "stalled": True, "error": ERROR}]),
        of_status(versions=[VERSION, {**VERSION, "version": "v-0", "stalled": True, "error": DAMAGED}]),
    ],
    ids=["two restarts", "at the bound", "few records", "in time", "not live", "waits a moment",
         "in time yet", "a new release", "a backup in time", "a young lake without one", "nothing live",
         "no folder is set", "stalled before its correction went live", "damaged, another is live"],
)  # fmt: skip
def test_what_keeps_its_bound_is_none(seen: Figures) -> None:
    assert found(seen) == []


def test_a_live_table_that_was_never_proved_is_one_once_its_release_is_old() -> None:
    release = {**STATUS["release"], "created_at": "2026-01-29T12:00:00Z"}
    (one,) = found(of_status(certificates=[], release=release))
    assert one.kind == "certificate" and "it has none since its release" in one.why


def test_freshness_is_measured_from_the_broker_by_what_the_contract_says() -> None:
    late = of_status(
        topics=[{**TOPIC, "lag_seconds": 3.0, "lag_records": 1}], versions=[{**VERSION, "lag_seconds": 2.5}]
    )
    assert kinds(late, {"sales": Promise(latency_s=6.0)}) == []
    (one,) = found(late, {"sales": Promise(latency_s=5.0)})
    assert (one.kind, one.about) == ("freshness", "sales")
    assert "its contract allows 5 seconds" in one.why


@pytest.mark.parametrize(("kind", "name"), [("table", "sales"), ("topic", "orders")])
def test_a_table_that_is_late_because_somebody_has_paused_it_says_so(kind: str, name: str) -> None:
    paused = {"kind": kind, "name": name, "what": f"{kind} {name}", "words": "paused since noon, by anna"}
    other = {**paused, "name": "another"}

    (one,) = found(of_status(versions=[{**VERSION, "lag_seconds": 9999.0}], paused=[other, paused]))

    assert one.why.endswith(f"; {kind} {name} is paused since noon, by anna")
    assert one.remedy == f"`twinlake resume {name} --{kind}`"


def test_a_quiet_topic_is_not_late_and_is_an_alarm_only_where_its_contract_says_so() -> None:
    newest = (NOW - timedelta(minutes=6)).isoformat().replace("+00:00", "Z")
    quiet = of_status(topics=[{**TOPIC, "newest": newest}])
    often = {"orders": Promise(frequency_s=300.0)}

    assert kinds(quiet) == []
    assert kinds(quiet, {"orders": Promise(frequency_s=600.0)}) == []
    assert kinds(quiet, often) == [("quiet", "topic orders")]
    for changed in ({"lag_records": 1}, {"paused": {"by": "anna"}}, {"newest": None}):
        assert kinds(of_status(topics=[{**TOPIC, "newest": newest, **changed}]), often) == []


def test_bounds_are_settings() -> None:
    assert kinds(replace(WELL, refused={"orders": (2, 100)}), quarantine_percent=1) != []
    assert kinds(replace(WELL, disk=Disk(free=9 << 30, total=100 << 30)), disk_free_percent=10) != []


def test_a_backup_that_failed_says_why_and_of_when_the_newest_is() -> None:
    (failed,) = found(of_status(backup={**BACKUP, "failed": ERROR}))
    (old,) = found(of_status(backup={**BACKUP, "newest": None, "since": "2025-12-01T00:00:00Z"}))
    (bound,) = found(of_status(), backup_hours=9)

    assert failed.what == "the last one failed"
    assert failed.why == "it stopped because; the newest is of 2026-01-31T02:30:00Z"
    assert failed.remedy == "look; `twinlake backup` takes one now"
    assert "there is none yet" in old.why and "DAG `backup`" in old.remedy
    assert "backup_hours allows 9 hours" in bound.why and bound.key == failed.key


def test_a_lake_server_that_does_not_answer_is_one_alarm_not_two() -> None:
    dead = replace(
        WELL, parts=[{**PART, "answers": False}], status=None, error=UnreachableError("it does not answer")
    )
    assert kinds(dead) == [("service", "lake")]


def test_every_kind_has_its_section_in_the_docs_and_there_are_no_others() -> None:
    lines = (PROJECT / "docs" / "alarms.md").read_text().splitlines()
    sections = {line.removeprefix("### Alarm: ") for line in lines if line.startswith("### Alarm: ")}
    assert sections == set(KINDS)
