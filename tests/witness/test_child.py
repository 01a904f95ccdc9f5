"""The child is bounded: whatever becomes of it, the asker gets an answer, and never a wrong `equal`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from twinlake.base.waiting import wait_for
from twinlake.witness.answer import EQUAL, FAILED, NOT_WITNESSED, Answer, Compared, Difference
from twinlake.witness.child import witness
from twinlake.witness.question import Field, Limits, Question, ReadTable, Rows, TopicLog

LIMITS = Limits(memory_mb=256, seconds=30)
ROWS = Rows(files=("/lake/a.parquet",), columns=(("id", "bigint"), ("amount", "decimal(12,2)")))
TOPIC = TopicLog(
    contract={"columns": [], "late_after": "3 hours"},
    fields=(Field(name="id", type="bigint", aliases=("number",), avro="long", has_default=True, default=0),),
    files=("/lake/log.parquet",), position=3, event={"id": "int", "id:bigint": "bigint"}, met={"7": ("id",)},
    watermark=5, clocks={"log_append_time": None},
)  # fmt: skip
QUESTION = Question(
    definition={"kind": "events", "name": "orders"}, topics={"orders": TOPIC}, shown=ROWS,
    reads={"sides": ReadTable(definition={"kind": "events"}, shown=ROWS)}, late=ROWS,
)  # fmt: skip
DIFFERENCE = Difference(
    key={"id": "1"}, columns=("amount",), witness={"amount": "1.00"}, shown={"amount": None}
)
ANSWER = Answer(
    table="orders", verdict=EQUAL, engine="DuckDB 2.0.0", rows=6_114, within_bound={"customers": 3},
    bounds={"customers": "within 9.4 %"}, differences=(DIFFERENCE,),
    final=Compared(verdict="differs", rows=2, differing=1, differences=(DIFFERENCE,)),
)  # fmt: skip


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def test_questions_and_answers_come_back_from_json_as_they_were() -> None:
    assert Question.from_json(json.loads(json.dumps(QUESTION.to_json()))) == QUESTION
    assert Answer.from_json(json.loads(json.dumps(ANSWER.to_json()))) == ANSWER
    assert Limits.from_json(json.loads(json.dumps(LIMITS.to_json()))) == LIMITS


def test_an_answer_says_in_words_what_it_is() -> None:
    assert ANSWER.words == "equal by DuckDB 2.0.0 (6,114 rows, customers within its bound)"
    assert replace(ANSWER, verdict=NOT_WITNESSED, why="kind odd").words == "not witnessed because kind odd"


def test_a_child_gets_the_question_and_the_limits_and_its_answer_is_the_answer(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    code = f"""
import pathlib, sys
pathlib.Path({str(asked)!r}).write_text(sys.stdin.read())
print({json.dumps(ANSWER.to_json())!r})
"""

    assert witness(QUESTION, LIMITS, python(code)) == ANSWER
    assert json.loads(asked.read_text()) == json.loads(
        json.dumps({"question": QUESTION.to_json(), "limits": LIMITS.to_json()})
    )


def test_a_child_knows_nothing_of_its_askers_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINLAKE_PASSWORD", "secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    found = tmp_path / "environment"

    witness(QUESTION, LIMITS, python(f"""
import json, os, pathlib
pathlib.Path({str(found)!r}).write_text(json.dumps([os.getcwd(), *os.environ]))
"""))  # fmt: skip

    place, *names = json.loads(found.read_text())
    known = {"PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LC_CTYPE"}  # Python adds the last
    assert place == "/" and set(names) <= known


def test_a_bounded_child_writes_no_byte_into_any_file(tmp_path: Path) -> None:
    code = f"""
from twinlake.witness.__main__ import bound
from twinlake.witness.question import Limits
bound(Limits())
try:
    with open({str(tmp_path / "file")!r}, "w") as file:
        file.write("something")
except OSError as error:
    print({json.dumps(ANSWER.to_json())!r})
"""

    assert witness(QUESTION, LIMITS, python(code)) == ANSWER
    assert (tmp_path / "file").stat().st_size == 0


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import os; os.abort()", "it ended with -6: it said nothing"),
        ("import sys; sys.exit('no such\\n thing')", "it ended with 1: no such thing"),
        ("print('{}')", "its answer cannot be read"),
        ("print('equal')", "its answer cannot be read"),
    ],
)
def test_a_child_that_crashes_has_failed(code: str, why: str) -> None:
    found = witness(QUESTION, LIMITS, python(code))

    assert (found.verdict, found.table) == (FAILED, "orders") and found.why.startswith(why)


def test_one_that_cannot_be_started_has_failed() -> None:
    assert witness(QUESTION, LIMITS, ("/nowhere/python",)).verdict == FAILED


def test_one_that_takes_too_long_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    code = f"""
import pathlib, subprocess, time
other = subprocess.Popen(["sleep", "60"])
pathlib.Path({str(started)!r}).write_text(str(other.pid))
time.sleep(60)
"""

    found = witness(QUESTION, replace(LIMITS, seconds=2), python(code))

    assert (found.verdict, found.why) == (NOT_WITNESSED, "it takes more than 2 s")
    pid = started.read_text()
    wait_for("the sleeper to be gone", lambda: True if state(pid) == "Z" else None, 10)


def state(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2]
    except OSError:
        return "Z"


def test_one_that_somebody_stops_is_ended_at_once() -> None:
    began = time.monotonic()

    found = witness(QUESTION, LIMITS, python("import time; time.sleep(60)"), lambda: True)

    assert (found.verdict, found.why) == (NOT_WITNESSED, "it was stopped")
    assert time.monotonic() - began < 20


def test_one_that_uses_up_its_time_by_itself_is_not_witnessed() -> None:
    found = witness(QUESTION, LIMITS, python("import os, signal; os.kill(os.getpid(), signal.SIGALRM)"))

    assert (found.verdict, found.why) == (NOT_WITNESSED, "it takes more than 30 s")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere its time ends it")
def test_a_child_ends_with_its_asker(tmp_path: Path) -> None:
    """A lake server that is killed leaves nobody behind who reads its files for an hour."""
    started, bounded = tmp_path / "started", tmp_path / "bounded"
    child = f"""
import os, pathlib, time
from twinlake.witness.__main__ import bound
from twinlake.witness.question import Limits
pathlib.Path({str(started)!r}).write_text(str(os.getpid()))
bound(Limits())
pathlib.Path({str(bounded)!r}).touch()
time.sleep(60)
"""
    asker = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    parent = subprocess.Popen([sys.executable, "-c", asker])
    wait_for("the child", lambda: bounded.exists() or None, 60)
    pid = started.read_text()

    parent.kill()
    parent.wait()

    wait_for("the child's end", lambda: True if state(pid) == "Z" else None, 10)
