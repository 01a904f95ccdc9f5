"""The DAG `replay`: what its form takes, and the one job that it asks for."""

from __future__ import annotations

from typing import Any

import pytest


def test_the_form_takes_a_topic_and_perhaps_a_reason(bag) -> None:
    params = bag.dags["replay"].params

    assert params.get_param("topic").resolve("orders") == "orders"
    reason = params.get_param("reason")
    assert [reason.resolve(one) for one in (None, "empty", "not_allowed:status")] == [
        None, "empty", "not_allowed:status"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("topic", ""), ("topic", None), ("topic", "orders; rm"), ("topic", "{{ 7*7 }}"), ("topic", "a" * 201),
        ("reason", ""), ("reason", "no reason"), ("reason", "empty:"), ("reason", "{{ dag_run.conf }}"),
    ],
)  # fmt: skip
def test_the_form_refuses_what_is_neither(bag, name: str, wrong: Any) -> None:
    from airflow.sdk.exceptions import AirflowException

    with pytest.raises((ValueError, AirflowException)):
        bag.dags["replay"].params.get_param(name).resolve(wrong)


@pytest.mark.parametrize(("reason", "reasons"), [(None, []), ("empty:region", ["empty:region"])])
def test_its_task_asks_for_one_job(
    bag, monkeypatch: pytest.MonkeyPatch, reason: str | None, reasons: list[str]
) -> None:
    asked = []
    judge_again = bag.dags["replay"].get_task("judge_again").python_callable
    params = {"topic": "orders", "reason": reason}
    monkeypatch.setitem(judge_again.__globals__, "get_current_context", lambda: {"params": params})
    monkeypatch.setitem(judge_again.__globals__, "run_job", lambda *job: asked.append(job) or {})

    judge_again()

    assert asked == [("replay", {"topic": "orders", "reasons": reasons})]
