"""`twinlake test`: runs the unit tests of definitions, from the files beside them. No service runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from twinlake.base.errors import UsageError
from twinlake.base.files import shown_path
from twinlake.base.interrupt import leave_at_once, restored
from twinlake.cli.output import load_settings, say, show_error, tell
from twinlake.config.settings import Settings

if TYPE_CHECKING:
    from twinlake.unit_tests.project_tests import Collected
    from twinlake.unit_tests.running import Outcome, Second

FAILED, MISTAKEN, NOTHING = 1, 2, 5
"""Exit codes; that of nothing to run is pytest's."""


def register(app: typer.Typer) -> None:
    """Adds `test`."""
    app.command("test")(test_command)


def test_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="tables, or their test files; else all that have tests"),
    ] = None,
    part: Annotated[
        str | None, typer.Option("-k", metavar="TEXT", help="only cases with this in their table or name")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="by Spark too: in several cuts, by speed and by batch")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="run again whenever a file of the project changes"),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write the outcomes as JUnit's XML, too")
    ] = None,
    record: Annotated[
        str | None, typer.Option(metavar="TABLE", help="add a case of the records behind one of its rows")
    ] = None,
    keys: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="with --record, the row's key columns")
    ] = None,
) -> None:
    """Run the cases of <table>.test.yaml beside the definitions: records in, rows out.

    Exit code 1: a case failed; 2: a file is wrong; 5: there was nothing to run.
    """
    settings = load_settings()
    if record is not None:
        from twinlake.cli.record_test import record as record_case

        return record_case(settings, record, keys or [])
    if junit is not None and junit.is_dir():
        raise UsageError(f"{junit} cannot be written", "it is a folder", "name a file, like results.xml")
    asked = _Asked(tuple(names or ()), part, full, junit)
    if watch:
        _watch(settings, asked)
    if code := _run(settings, asked):
        raise typer.Exit(code)


@dataclass(frozen=True)
class _Asked:
    """What the options say."""

    names: tuple[str, ...]
    part: str | None
    full: bool
    junit: Path | None


def _watch(settings: Settings, asked: _Asked) -> NoReturn:
    """Until somebody stops it."""
    from twinlake.cli.watch import watch
    from twinlake.definitions.loader import imported

    def look() -> Iterable[Path]:
        _run(settings, asked)
        return imported(settings.sources)

    watch(settings.sources, look)


@restored()
def _run(settings: Settings, asked: _Asked) -> int:
    """Collects, runs and tells; the exit code."""
    from twinlake.unit_tests import junit
    from twinlake.unit_tests.project_tests import collect, matching, opened
    from twinlake.unit_tests.running import run

    began = time.perf_counter()
    collected = collect(settings.sources, asked.names)
    for error in collected.wrong:
        show_error(error)
    outcomes = []
    with opened(collected) as world:
        for case in matching(collected.cases, asked.part):
            outcomes.append(run(world, case, lambda: _spark(settings), full=asked.full))
            tell_outcome(outcomes[-1])
    seconds = time.perf_counter() - began
    code = _summary(collected, outcomes, seconds)
    if asked.junit is not None:
        try:
            junit.write(asked.junit, outcomes, collected.wrong, seconds)
        except OSError as error:
            why = error.strerror or str(error)
            raise UsageError(f"{asked.junit} cannot be written", why, "name another file") from error
    return code


def tell_outcome(outcome: Outcome) -> None:
    case = outcome.case
    took = f"{outcome.seconds * 1000:.0f} ms" if outcome.seconds < 1 else f"{outcome.seconds:.1f} s"
    if outcome.passed:
        say(("passed", "green"), f"  {case.title} ({took})")
    elif outcome.mistake is not None:
        say(("wrong", "red"), f"   {case.title}")
        show_error(outcome.mistake)
    else:
        say(("FAILED", "bold red"), f"  {case.title} ({took})")
        say(f"        {shown_path(case.file)}:{case.line}")
        for line in outcome.failure.splitlines():
            say(f"        {line}" if line else "")
    if outcome.refused:
        tell(f"        by Spark: the witness does not evaluate {outcome.refused}")


def _summary(collected: Collected, outcomes: list[Outcome], seconds: float) -> int:
    passed = sum(one.passed for one in outcomes)
    wrong = sum(one.mistake is not None for one in outcomes) + len(collected.wrong)
    failed = sum(bool(one.failure) for one in outcomes)
    if not outcomes and not wrong:
        tell("there is nothing to run: no <table>.test.yaml beside a definition has such a case")
        return NOTHING
    counted = ((passed, "passed"), (failed, "failed"), (wrong, "wrong"))
    words = ", ".join(f"{number} {word}" for number, word in counted if number or word == "passed")
    tell((f"{words} in {seconds:.2f} s", "green" if not failed + wrong else "red"))
    return MISTAKEN if wrong else FAILED if failed else 0


def _spark(settings: Settings) -> Second:
    from twinlake.unit_tests.second import is_open, spark_of

    if not is_open():
        tell("starting Spark, which runs what the witness does not evaluate and all of --full")
    leave_at_once()
    return spark_of(settings, os.environ, tell)
