"""The asker's side of the witness: starts it as a child of low priority, bounds it, and reads its answer.

The child reads files of a lake and evaluates texts of a project. What becomes of it (a crash, memory, time)
ends with it: the asker gets an answer that says so, and never one that says `equal`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from twinlake.witness.answer import FAILED, NOT_WITNESSED, Answer, Verdict
from twinlake.witness.question import Limits, Question

COMMAND = (sys.executable, "-P", "-B", "-m", "twinlake.witness")
"""-P: a module of the project is none of Python's; -B: it writes nothing."""
_KEPT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What Python and its libraries are found by: the child needs nothing else of whoever asks, and no secret."""
_LOOK_S = 0.5
_SHOWN = 500
"""Characters of what a crashed child said last."""
_OUT_OF_TIME = {-signal.SIGXCPU, -signal.SIGALRM}


def never() -> bool:
    """Nobody stops it."""
    return False


T = TypeVar("T")


@dataclass(frozen=True)
class Ended:
    """A child that gave no answer."""

    verdict: Verdict
    why: str


def witness(
    question: Question,
    limits: Limits,
    command: tuple[str, ...] = COMMAND,
    is_stopped: Callable[[], bool] = never,
) -> Answer:
    """Ask, and wait for the answer; it comes after `limits.seconds` at the latest, and raises nothing.

    Once `is_stopped` says so the child is ended, and the question is not witnessed.
    """
    found = ask({"question": question.to_json()}, limits, Answer.from_json, command, is_stopped)
    if isinstance(found, Ended):
        return Answer(table=question.table, verdict=found.verdict, why=found.why)
    return found


def ask(
    question: Mapping[str, Any],
    limits: Limits,
    read: Callable[[Any], T],
    command: tuple[str, ...] = COMMAND,
    is_stopped: Callable[[], bool] = never,
) -> T | Ended:
    """The same of a question of any sort, one member by its name; `read` makes an answer of its JSON."""
    asked = json.dumps({**question, "limits": limits.to_json()})
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, cwd="/",
            env={name: value for name, value in {**os.environ}.items() if name in _KEPT},
        )  # fmt: skip
    except OSError as error:
        return Ended(FAILED, f"it could not be started: {error}")
    try:
        said, errors = _said(child, asked, limits, is_stopped)
    except subprocess.TimeoutExpired:
        return Ended(NOT_WITNESSED, "it was stopped" if is_stopped() else _too_long(limits))
    finally:
        _end(child)
    if child.returncode in _OUT_OF_TIME:
        return Ended(NOT_WITNESSED, _too_long(limits))
    if child.returncode != 0:
        last = " ".join(errors.split())[-_SHOWN:]
        return Ended(FAILED, f"it ended with {child.returncode}: {last or 'it said nothing'}")
    try:
        return read(json.loads(said))
    except (ValueError, KeyError, TypeError) as error:
        return Ended(FAILED, f"its answer cannot be read: {error!r}")


def _said(
    child: subprocess.Popen[str], asked: str, limits: Limits, is_stopped: Callable[[], bool]
) -> tuple[str, str]:
    """All of its stdout and stderr; TimeoutExpired when the time is over, or somebody stops it."""
    end, given = time.monotonic() + limits.seconds, asked
    while True:
        try:
            return child.communicate(given or None, timeout=_LOOK_S)
        except subprocess.TimeoutExpired:
            given = ""  # what was not written yet is; it may be given once only
            if is_stopped() or time.monotonic() > end:
                raise


def _too_long(limits: Limits) -> str:
    return f"it takes more than {limits.seconds:g} s"


def _end(child: subprocess.Popen[str]) -> None:
    """It and whatever it has started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    child.wait()
