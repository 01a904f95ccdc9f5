"""What `rebuild` and `verify` ask and print, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from click.testing import Result

from tests.cli.answers import Answers, Ended, lines
from twinlake.base.errors import DifferenceError, NotFoundError
from twinlake.base.job import CancelledError, Failed
from twinlake.batch.certify import Certified
from twinlake.kinds.windows import ALL
from twinlake.lake.catalog.certificates import Certificate
from twinlake.lake.catalog.witnessed import Witnessed
from twinlake.witness.answer import Answer, Difference

Twinlake = Callable[..., Result]

CERTIFICATE = Certificate(
    id="c", job="verify", kind="verify", table="t", version="v-1", fingerprint="f", position={"orders": 7},
    delta_version=3, step=4, through_segment=1, windows=ALL.to_json(), rows_compared=12_345,
    differing=0, equal=True,
)  # fmt: skip
CERTIFIED = Certified(certificate=CERTIFICATE, replaced=True, chunks=2)
ERROR = DifferenceError("speed and batch differ in 12 keys of t v-1", "fewer", "find the cause")
EQUAL = "t v-1: speed and batch are equal at orders batch 7 over all of history; 12,345 rows compared"
NOT_EQUAL = "t v-1: speed and batch are NOT equal at orders batch 7 over all of history; 12,345 rows compared"


def difference(region: str) -> dict[str, Any]:
    return {
        "key": {"region": region, "window_start": "now"}, "cause": "records_missing", "why": "fewer records",
        "columns": ["sales"], "speed": {"sales": "1.00"}, "batch": {"sales": "[2]"},
    }  # fmt: skip


def shown(title: str, region: str) -> list[str]:
    return [
        f"  {title}: region={region}, window_start=now (records_missing: fewer records)",
        "    speed {'sales': '1.00'}",
        "    batch {'sales': '[2]'}",
    ]


DIFFERENT = Certified(
    certificate=replace(
        CERTIFICATE, equal=False, differing=12, differences=[difference(f"r{number}") for number in range(12)]
    )
)
FAILED = Failed(error=ERROR, result=DIFFERENT)


@pytest.mark.parametrize("kind", ["rebuild", "verify"])
def test_an_equal_table_is_told_in_one_line(twinlake: Twinlake, kind: str) -> None:
    done = twinlake(Answers(**{kind: CERTIFIED.to_json()}), kind, "t")

    assert done.exit_code == 0, done.output
    assert lines(done) == [f"{kind} t (job {kind}): succeeded", EQUAL]


def test_rebuild_asks_for_what_it_was_given_and_nothing_else(twinlake: Twinlake) -> None:
    answers = Answers(rebuild=CERTIFIED.to_json())
    twinlake(answers, "rebuild", "t")
    twinlake(
        answers, "rebuild", "t", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z", "--repair",
        "--version", "v-1", "--key", "k",
    )  # fmt: skip

    windows = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    assert answers.asked == [
        {"kind": "rebuild", "params": {"table": "t"}},
        {
            "kind": "rebuild",
            "params": {"table": "t", "version": "v-1", **windows, "repair": True},
            "key": "k",
        },
    ]


def test_verify_asks_for_what_it_was_given_and_nothing_else(twinlake: Twinlake) -> None:
    answers = Answers(verify=CERTIFIED.to_json())
    twinlake(answers, "verify", "t")
    twinlake(answers, "verify", "t", "--due", "--repair", "--version", "v-1", "--key", "k")

    assert answers.asked == [
        {"kind": "verify", "params": {"table": "t"}},
        {
            "kind": "verify",
            "params": {"table": "t", "version": "v-1", "due": True, "repair": True},
            "key": "k",
        },
    ]


def test_what_is_not_due_shows_the_certificate_of_before(twinlake: Twinlake) -> None:
    done = twinlake(Answers(verify=replace(CERTIFIED, due=False).to_json()), "verify", "t", "--due")

    assert done.exit_code == 0
    assert lines(done)[1:] == ["t v-1: nothing is pending; this is its newest certificate", EQUAL]


def test_a_composed_certificate_says_what_it_covers(twinlake: Twinlake) -> None:
    made = replace(CERTIFICATE, base=replace(CERTIFICATE, position={"orders": 5}).as_base, windows=[])
    done = twinlake(Answers(verify=replace(CERTIFIED, certificate=made).to_json()), "verify", "t", "--due")

    assert lines(done)[1].endswith(
        " over all of history: the count of records since orders batch 5, on top of all that came up to "
        "orders batch 5; 12,345 rows compared"
    )


def test_a_range_in_which_nothing_lies_ends_with_1(twinlake: Twinlake) -> None:
    empty = replace(CERTIFIED, certificate=replace(CERTIFICATE, rows_compared=0)).to_json()
    given = twinlake(Answers(rebuild=empty), "rebuild", "t", "--from", "2030-01-01T00:00:00Z")
    whole = twinlake(Answers(rebuild=empty), "rebuild", "t")
    before = {**empty, "first_window": "2026-01-31T12:00:00Z"}
    early = twinlake(Answers(rebuild=before), "rebuild", "t", "--to", "2020-01-01")

    assert (given.exit_code, whole.exit_code, early.exit_code) == (1, 0, 1)
    assert lines(given)[1:] == ["nothing was rebuilt: no window of t begins in that range"]
    assert lines(early)[1:] == [
        "nothing was rebuilt: no window of t begins in that range; its first one begins at "
        "2026-01-31T12:00:00Z"
    ]


def test_a_difference_ends_with_1_and_shows_ten_keys_with_both_sides(twinlake: Twinlake) -> None:
    done = twinlake(Answers(verify=FAILED), "verify", "t")

    assert done.exit_code == 1
    assert lines(done) == [
        "verify t (job verify): failed",
        NOT_EQUAL,
        *(line for number in range(10) for line in shown("differs", f"r{number}")),
        "  and 2 more, see --json",
    ]


def test_what_another_engine_finds_different_ends_with_1_and_its_explanation_is_that_of_the_live_version(
    twinlake: Twinlake,
) -> None:
    one = Difference(key={"k": "1"}, columns=("n",), witness={"n": "1"}, shown={"n": "2"})
    answer = Answer(
        table="t", verdict="differs", engine="DuckDB 2.0.0", rows=3, differing=1, differences=(one,)
    )
    found = Witnessed(answer=answer, position={"orders": 7}, at="now")
    made = replace(CERTIFIED, certificate=replace(CERTIFICATE, witness=found)).to_json()
    live = twinlake(Answers(verify=made), "verify", "t")
    named = twinlake(Answers(verify=made), "verify", "t", "--version", "v-1")

    assert live.exit_code == named.exit_code == 1
    rows = ["    k=1", "      DuckDB: n=1", "      shown: n=2"]
    assert lines(named)[1:] == [EQUAL, "  DuckDB 2.0.0 differs in 1 of 3 rows", *rows]
    assert lines(live)[1:] == [*lines(named)[1:], "      twinlake explain t --key k=1"]


def test_a_rebuild_that_is_refused_says_how_to_repair(twinlake: Twinlake) -> None:
    done = twinlake(Answers(rebuild=FAILED), "rebuild", "t")

    assert (done.exit_code, lines(done)[1]) == (1, NOT_EQUAL)
    assert lines(done)[-1] == (
        "nothing was replaced; add --repair to replace what speed wrote by what batch computed"
    )


def test_a_difference_that_came_back_after_the_repair_is_not_to_be_repaired_again(
    twinlake: Twinlake,
) -> None:
    again = replace(DIFFERENT, replaced=True, repaired=[difference("r1")])
    done = twinlake(Answers(rebuild=Failed(error=ERROR, result=again)), "rebuild", "t", "--repair")

    assert done.exit_code == 1
    assert lines(done)[-4:] == ["  and 2 more, see --json", *shown("was repaired", "r1")]


@pytest.mark.parametrize("kind", ["rebuild", "verify"])
def test_what_was_repaired_is_shown_with_both_sides(twinlake: Twinlake, kind: str) -> None:
    repaired = replace(CERTIFIED, repaired=[difference("r1")])
    done = twinlake(Answers(**{kind: repaired.to_json()}), kind, "t", "--repair")

    assert done.exit_code == 0
    assert lines(done)[1:] == [EQUAL, *shown("was repaired", "r1")]


@pytest.mark.parametrize(
    ("found", "state", "exit_code"),
    [(CERTIFIED.to_json(), "succeeded", 0), (FAILED, "failed", 1)],
    ids=["equal", "different"],
)
def test_as_json_it_is_the_whole_result_whether_equal_or_not(
    twinlake: Twinlake, found: Any, state: str, exit_code: int
) -> None:
    done = twinlake(Answers(verify=found), "verify", "t", "--json")

    result = found.result.to_json() if isinstance(found, Failed) else found
    assert done.exit_code == exit_code
    assert json.loads(done.stdout) == {"job": "verify", "state": state, **result}
    assert done.stderr.splitlines() == [f"verify t (job verify): {state}"]


@pytest.mark.parametrize("error", [NotFoundError("there is no table 't'", "known: u"), CancelledError("j")])
def test_a_job_without_a_result_ends_with_its_error(twinlake: Twinlake, error: Any) -> None:
    done = twinlake(Answers(verify=Ended(error=error)), "verify", "t")

    assert type(done.exception) is type(error)
    assert done.exception.to_json() == error.to_json()
