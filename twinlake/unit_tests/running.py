"""Runs cases: by the witness, and by Spark where that is asked for or the witness has no answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from twinlake.base.errors import TwinlakeError
from twinlake.unit_tests.cases import Case
from twinlake.unit_tests.given import Given, World, given, question
from twinlake.unit_tests.matching import NEAR, differences, expected
from twinlake.unit_tests.records import Record
from twinlake.unit_tests.showing import differing_rows
from twinlake.unit_tests.source import TestMistake
from twinlake.witness.database import ENGINE
from twinlake.witness.refused import Refused
from twinlake.witness.rows import Found


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a case. It passed where nothing is wrong with it."""

    case: Case
    engines: tuple[str, ...] = ()
    """By which it was evaluated."""
    seconds: float = 0.0
    failure: str = ""
    """Lines for a person: expected and got."""
    mistake: TwinlakeError | None = None
    """What is wrong with the test itself, or with the definition that it tests."""
    refused: str = ""
    """Why the witness did not evaluate it, and Spark did."""

    @property
    def passed(self) -> bool:
        return not self.failure and self.mistake is None


@dataclass(frozen=True)
class Shown:
    """What one engine shows of a case; `how` says by which way, for one that has several."""

    how: str
    rows: Found
    late: Found | None
    near: float = NEAR
    """Doubles are equal within this part of the larger one."""


class Raised(Exception):
    """What an engine says in place of rows."""


class Second(Protocol):
    """Spark, as it is used here."""

    name: str

    def shown(self, world: World, case: Case, made: Given, *, full: bool) -> list[Shown]:
        """What the case's table shows, in one way or, `full`, in several; Raised where it shows nothing."""


def run(world: World, case: Case, spark: Callable[[], Second], *, full: bool = False) -> Outcome:
    """The outcome; whatever is wrong is in it. `spark` is called where Spark has to run."""
    began = time.perf_counter()
    try:
        with TemporaryDirectory(dir=world.engine.folder) as folder:
            outcome = _run(world, case, spark, Path(folder), full)
    except TestMistake as error:
        outcome = Outcome(case=case, mistake=error.alone())
    return replace(outcome, seconds=time.perf_counter() - began)


def _run(world: World, case: Case, spark: Callable[[], Second], folder: Path, full: bool) -> Outcome:
    made = given(world, case, folder)
    outcome = Outcome(case=case)
    found: list[tuple[str, Shown]] = []
    try:
        found.append((ENGINE, _by_witness(world, case, made, folder)))
        outcome = replace(outcome, engines=(ENGINE,))
    except Refused as error:
        outcome = replace(outcome, refused=error.words)
        if wrong := world.wrong(case.table):
            return replace(outcome, mistake=wrong, refused="")  # Spark would say so after a minute
    if full or outcome.refused:
        second = spark()
        outcome = replace(outcome, engines=(*outcome.engines, second.name))
        try:
            found += [(second.name, one) for one in second.shown(world, case, made, full=full)]
        except Raised as error:
            return replace(outcome, failure="\n".join((*_verdicts(made), f"{second.name}: {error}")))
    failures = _verdicts(made)
    for engine, shown in found:
        by = f" by {engine}{shown.how}" if full or outcome.refused else ""
        if lines := [*_rows(case, shown, by), *_late(case, shown, by)]:
            failures += lines
            break  # the other ways would say the same again
    return replace(outcome, failure="\n".join(failures))


def _by_witness(world: World, case: Case, made: Given, folder: Path) -> Shown:
    asked = question(world, case.table, made, folder)
    late = None if case.late is None else world.engine.late(asked)
    return Shown("", world.engine.found(asked), late)


def _rows(case: Case, shown: Shown, by: str) -> list[str]:
    wanted = expected(case.rows, shown.rows, f"table {case.table}")
    pairs = differences(wanted, shown.rows, shown.near)
    return differing_rows(f"rows{by}", pairs, len(wanted), len(shown.rows.rows)) if pairs else []


def _late(case: Case, shown: Shown, by: str) -> list[str]:
    if case.late is None or shown.late is None:
        return []
    wanted = expected(case.late, shown.late, f"{case.table}_late")
    pairs = differences(wanted, shown.late)
    return differing_rows(f"late{by}", pairs, len(wanted), len(shown.late.rows)) if pairs else []


def _verdicts(made: Given) -> list[str]:
    lines = []
    for topic, records in made.records.items():
        for number, one in enumerate(records, start=1):
            wrong = one.verdict != one.expected or (
                one.expected_reasons is not None and set(one.expected_reasons) != set(one.reasons)
            )
            if wrong:
                lines += [f"verdict of record {number} of {topic} (line {one.part.line}):", *_verdict(one)]
    return lines


def _verdict(record: Record) -> list[str]:
    wanted = " ".join((record.expected, *(record.expected_reasons or ())))
    return [f"  expected  {wanted}", f"  got       {' '.join((record.verdict, *record.reasons))}"]
