"""What a DAG is given is looked at as it enters and again where it acts: no `true` for 1, no "1", no 1.0."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from twinlake.airflow.backfill import MOST_HOURS, chunks_between
from twinlake.base.errors import UsageError

ODD = (True, "1", 1.5, float("nan"), float("inf"), 0, -1, [1])
NUMBERS = (("rollback", "to"), ("maintain", "keep"), ("backfill", "chunk_hours"))
DONE = {"tables": {}, "release": 1}
RANGE = ("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z")


@pytest.mark.parametrize(
    ("dag", "name", "wrong"),
    [
        *((*named, wrong) for named in NUMBERS for wrong in ODD),
        ("backfill", "chunk_hours", MOST_HOURS + 1), ("backfill", "chunk_hours", None),
        *(("backfill", name, wrong) for name in ("table", "from", "to") for wrong in ("", 1, True, None)),
        *(("batch", "windows", wrong) for wrong in ("", "Due", 1, True, None)),
        *(("replay", name, wrong) for name in ("topic", "reason") for wrong in ("", "a\\0", 1, True)),
        *(("release", "definitions", wrong) for wrong in ("", 1, True, [])),
        *(("release", "tables", wrong) for wrong in ("", "a", 1, True, [], [""], [1], {})),
        *(("rollback", "reason", wrong) for wrong in (1, True, "x" * 501)),
    ],
)  # fmt: skip
def test_a_form_refuses_what_is_something_else(bag, dag: str, name: str, wrong: Any) -> None:
    with pytest.raises((ValueError, AirflowException)):
        bag.dags[dag].params.get_param(name).resolve(wrong)


@pytest.mark.parametrize(("dag", "name"), NUMBERS)
def test_a_form_does_not_make_another_number_of_what_was_typed(bag, dag: str, name: str) -> None:
    """Airflow's form turns a typed 0 into the `minimum` without a word, and then that is done."""
    schema = bag.dags[dag].params.get_param(name).schema

    assert schema.keys().isdisjoint({"minimum", "maximum"})


def asked(bag, monkeypatch: pytest.MonkeyPatch, dag: str, task: str, params: dict[str, Any]) -> Any:
    """What the task asks of the lake server, which refuses by its own rules what is not of the right type."""

    class Run:
        triggering_user_name = "ada"

    jobs: list[dict[str, Any]] = []
    act = bag.dags[dag].get_task(task).python_callable
    context = {"params": params, "dag_run": Run()}
    monkeypatch.setitem(act.__globals__, "get_current_context", lambda: context)
    monkeypatch.setitem(act.__globals__, "run_job", lambda kind, given: jobs.append(given) or DONE)
    monkeypatch.setitem(act.__globals__, "announce", lambda *event, **facts: None)
    act()
    return jobs


@pytest.mark.parametrize("odd", [True, 1.0, "1"])
def test_a_task_passes_on_what_it_was_given_and_does_not_convert_it(
    bag, monkeypatch: pytest.MonkeyPatch, odd: Any
) -> None:
    """Airflow takes 1.0 for an integer; the API does not."""
    (rollback,) = asked(bag, monkeypatch, "rollback", "roll_back", {"to": odd, "reason": odd})
    (retire,) = asked(bag, monkeypatch, "maintain", "retire", {"keep": odd})
    (replay,) = asked(bag, monkeypatch, "replay", "judge_again", {"topic": odd, "reason": ""})

    assert [type(one) for one in (rollback["to"], rollback["reason"], retire["keep"])] == [type(odd)] * 3
    assert type(replay["topic"]) is type(odd)
    assert replay["reasons"] == [""]  # not all of the quarantine


@pytest.mark.parametrize("hours", [True, 1.0, "1", 0, -1, MOST_HOURS + 1, 10**400, None])
def test_chunks_are_of_whole_hours(hours: Any) -> None:
    with pytest.raises(UsageError, match="is not a number of hours"):
        chunks_between(*RANGE, hours)


@pytest.mark.parametrize("wrong", [1, True, None, "", "2026-03-01\\0"])
def test_a_range_is_between_two_moments(wrong: Any) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        chunks_between(RANGE[0], wrong, 1)


@pytest.mark.parametrize("windows", ["", "Due", True, 1, None])
def test_batch_does_not_take_any_other_word_for_all_of_history(
    bag, monkeypatch: pytest.MonkeyPatch, windows: Any
) -> None:
    rebuild = bag.dags["batch"].get_task("both.rebuild").python_callable
    context = {"params": {"windows": windows}, "dag_run": SimpleNamespace(run_type="manual")}
    monkeypatch.setitem(rebuild.__globals__, "get_current_context", lambda: context)

    with pytest.raises(AirflowFailException, match="not due or all"):
        rebuild("orders")
