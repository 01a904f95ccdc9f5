"""`twinlake dev TABLE`: after each save what is wrong, the columns, rows over a sample, what has changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinlake.base.errors import TwinlakeError, near
from twinlake.base.files import shown_path
from twinlake.base.interrupt import leave_at_once, restored
from twinlake.cli.local_lake import live_definitions, log_files
from twinlake.cli.output import load_settings, say, show_error, show_rows, tell
from twinlake.config.settings import Settings

if TYPE_CHECKING:
    from twinlake.definitions.loader import Loaded
    from twinlake.releases.check import Report
    from twinlake.unit_tests.given import World
    from twinlake.unit_tests.project_tests import Collected
    from twinlake.unit_tests.running import Second
    from twinlake.unit_tests.sample import Sample
    from twinlake.witness.rows import Found

BY_SPARK = "f"
"""What is typed to have Spark say the rest."""
WRONG, UNKNOWN = 1, 3
"""Exit codes of --once: something is wrong; only Spark can say whether something is."""
MOST = 10
"""So many rows are shown."""
_WIDEST = 40


def register(app: typer.Typer) -> None:
    """Adds `dev`."""
    app.command("dev")(dev)


def dev(
    table: Annotated[str, typer.Argument(help="the table whose definition is written")],
    full: Annotated[
        bool, typer.Option("--full", help="by Spark what the witness does not evaluate, after each save")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="look once, and end; 1: something is wrong, 3: only Spark can say")
    ] = False,
) -> None:
    """Watch a table's definition and what it rests on; after each save say what is wrong with it, its
    columns, its rows over a sample of records, what has changed, and which unit tests fail.

    Starts no service and, unless it is asked to, no Spark.
    """
    from twinlake.cli.watch import watch
    from twinlake.definitions.loader import imported

    settings = load_settings()
    session = _Session(settings, table, full, once)
    if once:
        session.look()
        if code := session.exit_code:
            raise typer.Exit(code)
        return

    def look() -> Iterable[Path]:
        session.look()
        return imported(settings.sources)

    watch(settings.sources, look, session.typed)


class _Session:
    """One table under development."""

    def __init__(self, settings: Settings, table: str, full: bool, once: bool) -> None:
        from twinlake.unit_tests.developing import Developing

        self._settings, self._table, self._full, self._once = settings, table, full, once
        self._developing = Developing(table)
        self._columns: dict[str, str] | None = None
        self._is_right, self._is_left = False, False
        """Whether nothing is wrong that is known, and whether something is left for Spark to say."""
        self._of_lake: tuple[Any, Sample] | None = None
        """The topics, as JSON has them, and the sample of their logs."""
        self._last: Sample | None = None
        """That of the tests, the last time that they could be read."""

    def typed(self, line: str) -> None:
        """Spark is asked once, for what is there now."""
        if line == BY_SPARK:
            self.look(full=True)
        elif line:
            tell(f"{BY_SPARK} and Enter has Spark say the rest, ^C ends it")

    @property
    def exit_code(self) -> int:
        """Of what the last look has found."""
        return WRONG if not self._is_right else UNKNOWN if self._is_left else 0

    @restored()
    def look(self, full: bool = False) -> None:
        """Says all that there is to say."""
        from twinlake.definitions.loader import load
        from twinlake.releases.check import check
        from twinlake.releases.checked import Checked
        from twinlake.unit_tests.project_tests import collect_of

        began, full = time.perf_counter(), full or self._full
        sources = self._settings.sources
        loaded = load(*sources)
        report = check(sources, checked=Checked(), loaded=loaded)
        self._is_left = False
        self._is_right = self._tell_problems(report, loaded, full)
        if self._is_right:
            self._is_right = self._tell_rows(collect_of(loaded, sources, self._table), full)
        found = {
            0: ("is right", "green"), WRONG: ("is wrong", "red"),
            UNKNOWN: ("is right as far as is known without Spark", "yellow"),
        }[self.exit_code]  # fmt: skip
        tell((f"{self._table} {found[0]}", found[1]), f" ({time.perf_counter() - began:.2f} s)")

    def _tell_problems(self, report: Report, loaded: Loaded, full: bool) -> bool:
        """Whether the table can be looked at; what is wrong elsewhere is only counted."""
        from twinlake.releases import findings

        tables = {one.name: one for one in loaded.tables}
        known = self._table in tables
        concerned = {self._table}
        waiting = [self._table]
        while waiting:  # what is not defined, or reads in a circle, is reported
            reads = tables[name].reads if (name := waiting.pop()) in tables else ()
            waiting += [one for one in reads if one not in concerned]
            concerned |= set(reads)
        topics = {name for one in concerned & tables.keys() for name in tables[one].inputs}
        mine, others = [], 0
        for problem in report.problems:
            about = {problem.facts.get("table"), Path(problem.facts.get("file", "")).name.split(".")[0]}
            if about & (concerned | topics) or (not known and problem in loaded.wrong):
                mine.append(findings.to_json(problem))
            else:
                others += 1
        for one in mine:
            place = f"{shown_path(one['file'])}:{one['line']}:{one['column']}: " if one["file"] else ""
            say((f"{place}{one['why'] or one['what']}", "bold red"))
            if one["remedy"]:
                say(f"    do:  {one['remedy']}")
        if others:
            tell((f"{others} more to repair in other files: `twinlake check`", "yellow"))
        if not known and not mine:
            say((self._why_not_there(tables), "bold red"))
        for left in () if full else report.left:  # its rows say more
            if left.facts.get("table") == self._table:
                self._is_left = True
                tell((f"only Spark can say whether this is right: {left.what}", "yellow"))
        columns = next((one["columns"] for one in report.tables if one["name"] == self._table), None)
        if columns is not None and not mine:
            self._tell_columns({one["name"]: one["type"] for one in columns})
        return known and not mine

    def _why_not_there(self, tables: Iterable[str]) -> str:
        for project in self._settings.sources:
            for file in project.tables.rglob(f"{self._table}.py"):  # one of SQL is a table, or wrong
                return f"{shown_path(file)} has no TABLE"
        return f"there is no table {self._table!r}{near(self._table, tables)}"

    def _tell_columns(self, now: dict[str, str]) -> None:
        before, self._columns = self._columns, now
        say("columns  ", ", ".join(f"{name} {type_}" for name, type_ in now.items()))
        if before is not None and before != now:
            gone = [f"{name} is gone" for name in before if name not in now]
            new = [f"{name} is new" for name in now if name not in before]
            other = [f"{name} was {before[name]}" for name in now if before.get(name, now[name]) != now[name]]
            say("         ", "; ".join([*gone, *new, *other]) or "in another order")

    def _tell_rows(self, collected: Collected, full: bool) -> bool:
        """The rows of the sample, what differs, and the unit tests; whether none fails."""
        from twinlake.unit_tests.project_tests import opened

        with opened(collected) as world:
            sample = self._sampled(world, collected)
            spark = self._spark if full else None
            tried = self._developing.tried(world, sample, spark)
            counted = ", ".join(f"{number} {verdict}" for verdict, number in tried.verdicts.items())
            say("sample   ", f"{sample.origin} ({counted or 'no records'})")
            if tried.found is None:
                self._is_left = True
                say("rows     ", (f"only Spark can say: {tried.refused}", "yellow"))
                ask = "add --full" if self._once else f"type {BY_SPARK} and Enter"
                tell(f"{ask} to have Spark say it: the first time it takes half a minute")
            else:
                _tell_found(tried.found)
                _tell_lines("since the last save", tried.since)
                _tell_lines("against the live version", self._against(world, sample, tried.found))
            return self._tell_tests(world, collected, full)

    def _tell_tests(self, world: World, collected: Collected, full: bool) -> bool:
        from twinlake.cli.test import tell_outcome
        from twinlake.unit_tests.running import run

        for error in collected.wrong:
            show_error(error)
        outcomes, waiting = [], 0
        for case in collected.cases:
            try:
                outcomes.append(run(world, case, self._spark if full else _needed))
            except _NeedsSpark:
                waiting += 1
        self._is_left = self._is_left or waiting > 0
        failing = [one for one in outcomes if not one.passed]
        for outcome in failing:
            tell_outcome(outcome)
        none = "their file is wrong" if collected.wrong else "there are none"
        passed = f"{len(outcomes) - len(failing)} passed" if collected.cases else none
        failed = f", {len(failing)} failed" if failing else ""
        needed = f", {waiting} {'need' if waiting > 1 else 'needs'} Spark" if waiting else ""
        say("tests    ", (f"{passed}{failed}{needed}", "red" if failing or collected.wrong else "green"))
        return not failing and not collected.wrong

    def _sampled(self, world: World, collected: Collected) -> Sample:
        """A lake's records are the same after each save, as long as the topics are."""
        from twinlake.unit_tests import sample

        topics = {name: one.to_json() for name, one in world.topics.items()}
        if self._of_lake is None or self._of_lake[0] != topics:
            found = sample.of_lake(world, self._table, lambda topic: log_files(self._settings.lake, topic))
            self._of_lake = None if found is None else (topics, found)
        if self._of_lake is not None:
            return self._of_lake[1]
        if collected.wrong and not collected.cases and self._last is not None:
            return self._last  # what has changed is then what the definition has
        self._last = sample.of_cases(self._table, collected.cases) or sample.filled(world, self._table)
        return self._last

    def _against(self, world: World, sample: Sample, found: Found) -> list[str]:
        """What differs from the live version over the sample, or why that is not known."""
        from twinlake.unit_tests.developing import SAME
        from twinlake.witness.refused import Refused

        try:
            number, live = live_definitions(self._settings.lake, self._table)
            differs = self._developing.against(world, sample, live, found)
        except Refused as error:
            return [f"not compared: only Spark can evaluate it, {error.words}"]
        except TwinlakeError as error:
            return [f"not compared: {error.what}"]
        first, *more = differs or [SAME]
        return [f"{first} (release {number})", *more]

    def _spark(self) -> Second:
        from twinlake.unit_tests.second import spark_of

        tell("asking Spark")
        leave_at_once()
        return spark_of(self._settings, os.environ, tell)


class _NeedsSpark(Exception):
    """A case that the witness does not evaluate, and nobody has asked for Spark."""


def _needed() -> Second:
    raise _NeedsSpark


def _tell_found(found: Found) -> None:
    many = len(found.rows)
    say("rows     ", f"{many:,}" + (f", the first {MOST}:" if many > MOST else ""))
    if found.rows:
        cells = ([_cell(value) for value in row] for row in found.rows[:MOST])
        show_rows(found.names, cells)


def _cell(value: Any) -> str:
    from twinlake.unit_tests.values import shown

    text = shown(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _tell_lines(title: str, lines: Iterable[str]) -> None:
    first, *more = [*lines] or [""]
    if first:
        say(f"{title}: {first}")
    for line in more:
        say(f"    {line}")
