"""Each check of the gate answers from plain data, in words that name the values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from twinlake.kinds.events import Events
from twinlake.kinds.windows import ALL
from twinlake.lake.catalog.certificates import Certificate
from twinlake.lake.catalog.plans import Plan, Plans
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Health, Version
from twinlake.lake.catalog.witnessed import Witnessed
from twinlake.releases.gate_checks import (
    MAX_CERTIFICATE_AGE_SECONDS,
    Check,
    Excuse,
    Gate,
    certificate_check,
    columns_check,
    lag_check,
    production_check,
    witness_check,
)
from twinlake.topics.contract import Column, Contract
from twinlake.witness.answer import Answer, Verdict

VERSION = Version(table="sales", fingerprint="a" * 64, build=3, definition={}, topics=("orders",),
                  contracts={}, created_at="2026-01-31T12:00:00Z")  # fmt: skip
EVENTS = Events(name="big_orders", inputs=("orders",), columns={"order_id": "order_id", "amount": "amount"})
CONTRACT = Contract(
    name="big_orders", version="1", file="big_orders.yaml", rules=(),
    columns=(Column(name="order_id", type="string", key=True), Column(name="amount", type="decimal(12,2)")),
)  # fmt: skip
PROMISED = {"order_id": "string", "amount": "decimal(12,2)"}
PASSED = Check(table="sales", name="lag", passed=True, detail="0.0 s behind the log")
FAILED = Check(table="sales", name="certificate", passed=False, detail="there is none")
ALSO_FAILED = Check(table="", name="production", passed=False, detail="release 4 is live")


def planned(before: int | None) -> Plan:
    return Plan(id="0" * 12, release_before=before, changes=(), definitions={}, created_at="now")


def release(number: int) -> Release:
    return Release(number=number, kind="promote", tables={}, created_at="now", approved_by="tester")


def certificate(**more: Any) -> Certificate:
    usual: dict[str, Any] = {
        "id": "c1", "job": "j1", "kind": "verify", "table": "sales", "version": VERSION.name,
        "fingerprint": VERSION.fingerprint, "position": {"orders": 17}, "delta_version": 5, "step": 4,
        "through_segment": None, "windows": ALL.to_json(), "rows_compared": 12_345,
        "differing": 0, "equal": True, "created_at": "2026-01-31T12:00:00Z",
    }  # fmt: skip
    return Certificate(**{**usual, **more})


def health(lag_seconds: float | None, stalled: bool = False) -> Health:
    return Health(
        table="sales", version=VERSION.name, position={"orders": 17}, lag_seconds=lag_seconds, stalled=stalled
    )


@pytest.mark.parametrize(
    ("before", "live", "passed", "detail"),
    [
        (4, release(4), True, "release 4 is live, as in the plan"),
        (None, None, True, "no release is live, as in the plan"),
        (4, release(5), False, "planned against release 4, now release 5 is live"),
        (None, release(1), False, "planned against no release, now release 1 is live"),
        (4, None, False, "planned against release 4, now no release is live"),
    ],
)
def test_production_is_as_planned_only_while_the_same_release_is_live(
    before: int | None, live: Release | None, passed: bool, detail: str
) -> None:
    made = production_check(planned(before), live)

    assert made == Check(table="", name="production", passed=passed, detail=detail)


def test_production_is_as_planned_when_the_plan_itself_is_live() -> None:
    made = production_check(planned(4), replace(release(5), plan=planned(4).id))

    assert made == Check(table="", name="production", passed=True, detail="it is live: release 5")


def test_a_missing_certificate_fails_and_names_the_command_that_makes_one() -> None:
    made = certificate_check(VERSION, None, 0.0)

    detail = "there is none: run `twinlake verify sales --version aaaaaaaaaaaa-3`"
    assert made == Check(table="sales", name="certificate", passed=False, detail=detail)


def test_an_unequal_certificate_fails_however_new_it_is() -> None:
    unequal = certificate(equal=False, differing=2, position={"orders": 17, "returns": 3})

    made = certificate_check(VERSION, unequal, 0.0)

    detail = "speed and batch differ in 2 keys at orders batch 17, returns batch 3"
    assert made == Check(table="sales", name="certificate", passed=False, detail=detail)


def test_an_equal_certificate_passes_up_to_the_allowed_age() -> None:
    made = certificate_check(VERSION, certificate(), MAX_CERTIFICATE_AGE_SECONDS)

    detail = "equal at orders batch 17, 12,345 rows compared, 900 s old"
    assert made == Check(table="sales", name="certificate", passed=True, detail=detail)


def test_an_equal_certificate_fails_above_the_allowed_age() -> None:
    made = certificate_check(VERSION, certificate(), MAX_CERTIFICATE_AGE_SECONDS + 1)

    detail = "equal at orders batch 17, 12,345 rows compared, 901 s old; 0 to 900 s are allowed"
    assert made == Check(table="sales", name="certificate", passed=False, detail=detail)


def witness(verdict: Verdict, **more: Any) -> Witnessed:
    answer = Answer(table="sales", verdict=verdict, engine="DuckDB 2.0.0", rows=12_345, **more)
    return Witnessed(answer=answer, position={"orders": 17}, at="now")


EQUAL, DIFFERS = witness("equal"), witness("differs", differing=2)
REFUSED = witness("not_witnessed", why="hash(x) (no such function)")
FAILED_TO_ANSWER = witness("failed", why="it was killed")
SAID: list[tuple[Witnessed | None, str]] = [
    (EQUAL, "speed = batch = DuckDB 2.0.0 (12,345 rows)"),
    (DIFFERS, "DuckDB 2.0.0 differs in 2 of 12,345 rows"),
    (REFUSED, "speed = batch, not witnessed because hash(x) (no such function)"),
    (FAILED_TO_ANSWER, "the witness failed: it was killed"),
    (None, "no other engine has been asked"),
]
REPORTED = "; it is reported, and blocks nothing"


def asked_of(found: Witnessed | None, policy: str, reason: str | None = None) -> tuple[bool, str]:
    excuse = None if reason is None else Excuse.of(REFUSED.answer, reason, "ann")
    made = witness_check(VERSION, certificate(witness=found), policy, excuse)
    assert (made.table, made.name) == ("sales", "witness")
    return made.passed, made.detail


@pytest.mark.parametrize(("found", "said"), SAID)
def test_another_engine_is_reported_and_blocks_nothing_unless_it_is_required(
    found: Witnessed | None, said: str
) -> None:
    assert asked_of(found, "report") == (True, said if found is EQUAL else f"{said}{REPORTED}")


@pytest.mark.parametrize(("found", "said"), SAID)
def test_where_another_engine_is_required_only_its_agreement_passes(
    found: Witnessed | None, said: str
) -> None:
    more = "; to go live with it, add --unwitnessed 'sales=REASON'" if found is REFUSED else ""

    assert asked_of(found, "required") == (found is EQUAL, said + more)


@pytest.mark.parametrize(("found", "said"), SAID)
def test_a_reason_excuses_what_cannot_be_evaluated_and_nothing_else(
    found: Witnessed | None, said: str
) -> None:
    passed, detail = asked_of(found, "required", "checked by hand")

    assert passed == (found in (EQUAL, REFUSED))
    assert detail == (f"{said}; accepted by ann: checked by hand" if found is REFUSED else said)


@pytest.mark.parametrize(
    "other",
    [
        witness("not_witnessed", why="rand() (no such function)", refused="rand()"),
        witness("not_witnessed", why="it takes more than 3600 s"),
    ],
    ids=lambda found: found.answer.why,
)
def test_a_reason_is_for_what_was_refused_when_it_was_given(other: Witnessed) -> None:
    passed, detail = asked_of(other, "required", "checked by hand")

    assert not passed and "accepted" not in detail and "--unwitnessed" in detail


def test_an_answer_of_an_earlier_position_says_of_which() -> None:
    near = witness("equal", within_bound={"customers": 3})
    before = replace(near, position={"orders": 5}, at="2026-01-30T12:00:00Z")

    detail = "speed = batch = DuckDB 2.0.0 (12,345 rows, customers within its bound)"
    assert asked_of(near, "required") == (True, detail)
    place = ", at orders batch 5 on 2026-01-30T12:00:00Z"
    assert asked_of(before, "report") == (True, f"{detail}{place}{REPORTED}")
    assert asked_of(before, "required") == (False, detail + place), "it says nothing of what came since"


def test_an_equal_certificate_of_the_future_fails_because_a_clock_went_back() -> None:
    made = certificate_check(VERSION, certificate(), -5.0)

    detail = "equal at orders batch 17, 12,345 rows compared, -5 s old; 0 to 900 s are allowed"
    assert made == Check(table="sales", name="certificate", passed=False, detail=detail)


@pytest.mark.parametrize(("lag_seconds", "passed"), [(0.0, True), (10.0, True), (10.5, False)])
def test_a_version_passes_up_to_ten_seconds_behind_its_log(lag_seconds: float, passed: bool) -> None:
    made = lag_check(health(lag_seconds))

    detail = f"{lag_seconds} s behind the log, 10 s are allowed"
    assert made == Check(table="sales", name="lag", passed=passed, detail=detail)


def test_the_limit_of_the_lag_can_be_another() -> None:
    made = lag_check(health(3.0), limit=2.5)

    detail = "3.0 s behind the log, 2.5 s are allowed"
    assert made == Check(table="sales", name="lag", passed=False, detail=detail)


def test_a_stalled_version_fails_even_at_the_end_of_its_log() -> None:
    made = lag_check(health(0.0, stalled=True))

    detail = "the version is stalled; 0.0 s behind the log, 10 s are allowed"
    assert made == Check(table="sales", name="lag", passed=False, detail=detail)


def test_a_view_kind_has_no_lag_and_passes() -> None:
    made = lag_check(health(None))

    detail = "it reads its logs, and has no lag"
    assert made == Check(table="sales", name="lag", passed=True, detail=detail)


def test_a_view_with_the_promised_columns_and_those_that_its_kind_implies_passes() -> None:
    made = columns_check(EVENTS, CONTRACT, {**PROMISED, "_offset": "bigint", "_partition": "int"})

    assert made == Check(table="big_orders", name="columns", passed=True, detail="2 columns as promised")


@pytest.mark.parametrize(
    ("types", "detail"),
    [
        ({"order_id": "string"}, "amount is missing, promised decimal(12,2)"),
        ({**PROMISED, "amount": "double"}, "amount is double, promised decimal(12,2)"),
        ({**PROMISED, "note": "string"}, "note is not in the contract"),
        (
            {"amount": "double", "note": "string"},
            "order_id is missing, promised string; amount is double, promised decimal(12,2); "
            "note is not in the contract",
        ),
    ],
    ids=["missing", "wrong type", "extra", "all three"],
)
def test_a_view_that_is_not_as_promised_fails_and_names_each_column(
    types: dict[str, str], detail: str
) -> None:
    made = columns_check(EVENTS, CONTRACT, types)

    assert made == Check(table="big_orders", name="columns", passed=False, detail=detail)


@pytest.mark.parametrize(
    ("checks", "failures"),
    [
        ((PASSED,), ()),
        ((PASSED, FAILED), (FAILED,)),
        ((FAILED, PASSED, ALSO_FAILED), (FAILED, ALSO_FAILED)),
    ],
)
def test_a_gate_passes_when_every_check_does_and_lists_those_that_do_not(
    checks: tuple[Check, ...], failures: tuple[Check, ...]
) -> None:
    gate = Gate(plan="0" * 12, at="now", checks=checks)

    assert (gate.failures, gate.passed) == (failures, not failures)


def test_a_gate_comes_back_from_its_file_and_says_there_whether_it_passed(tmp_path: Path) -> None:
    asked_of = {"sales": [VERSION.name, {"orders": 17}]}
    gate = Gate(plan="0" * 12, at="2026-01-31T12:00:00Z", checks=(PASSED, FAILED), asked_of=asked_of)

    Plans(tmp_path).save_gate(gate.plan, gate.to_json())

    assert gate.to_json()["passed"] is False
    assert Plans(tmp_path).gate(gate.plan, Gate) == gate
