"""The demo's own judgement: what its reader and its summary call right and wrong."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.demo.reader import Answer, Range, Reader
from tests.demo.story import CHANGED, changed_definitions
from tests.demo.summary import DemoError, Summary
from tests.project import TABLES
from twinlake.kinds.all import from_json

OLD: Answer = {"north": (10, "10.00"), "south": (5, "5.00")}
NEW: Answer = {"north": (9, "9.00"), "south": (4, "4.00")}


class StopAsking(Exception):
    """The answers are used up."""


def _read(answers: list[Answer | Exception]) -> Reader:
    left: Iterator[Answer | Exception] = iter(answers)

    def ask() -> Answer:
        one = next(left, None)
        if one is None:
            reader._stop.set()
            raise StopAsking
        if isinstance(one, Exception):
            raise one
        return one

    reader = Reader(ask=ask, answers={"old": OLD, "new": NEW}, pause_s=0)
    reader.start()
    reader._thread.join(10)
    assert reader.errors.pop() == "StopAsking: "
    return reader


def test_a_reader_remembers_the_order_of_whole_answers() -> None:
    reader = _read([OLD, OLD, NEW, OLD, NEW])

    assert reader.phases == ["old", "new", "old", "new"]
    assert (reader.mixtures, reader.errors) == ([], [])


def test_an_answer_that_is_partly_old_is_a_mixture() -> None:
    reader = _read([OLD, {**NEW, "south": OLD["south"]}, NEW])

    assert len(reader.mixtures) == 1
    assert reader.phases == ["old", "new"]


def test_an_error_of_the_reader_is_kept_and_the_next_read_goes_on() -> None:
    reader = _read([OLD, RuntimeError("view not found"), NEW])

    assert reader.errors == ["RuntimeError: view not found"]
    assert reader.phases == ["old", "new"]


def test_a_range_is_made_of_whole_minutes_inside() -> None:
    assert Range.of_minutes(60_001, 239_999) == Range(start_ms=120_000, end_ms=180_000)
    assert Range.of_minutes(60_000, 240_000) == Range(start_ms=60_000, end_ms=240_000)


def test_the_change_is_one_condition_of_one_table() -> None:
    today = {table.name: table for table in TABLES}

    changed = {name: from_json(one) for name, one in changed_definitions().items()}

    differing = {name: one for name, one in changed.items() if one != today[name]}
    assert differing == {CHANGED: replace(today[CHANGED], where="status <> 'cancelled'")}
    assert list(changed) == list(today)


@pytest.fixture
def summary(tmp_path: Path) -> Summary:
    return Summary(file=tmp_path / "demo" / "summary.json", console=Console(file=io.StringIO()))


def test_a_check_that_does_not_hold_fails_the_demo(summary: Summary) -> None:
    with summary.step("one") as figures:
        figures["rows"] = 3
        summary.check("equal", True)
    assert summary.passed
    with summary.step("two"):
        summary.check("no mixture", False, "2 answers")

    found = json.loads(summary.file.read_text())
    assert (summary.passed, found["passed"]) == (False, False)
    assert [step["figures"] for step in found["steps"]] == [{"rows": 3}, {}]


def test_a_step_that_breaks_off_fails_the_demo_and_is_kept(summary: Summary) -> None:
    with pytest.raises(DemoError), summary.step("one"):
        raise DemoError("the broker is gone")

    assert json.loads(summary.file.read_text())["steps"][0]["error"] == "DemoError: the broker is gone"
    assert not summary.passed
