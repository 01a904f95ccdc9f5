"""Runs the unit tests of tables for whoever reads what their change does; no Spark is started for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twinlake.base.interrupt import restored
from twinlake.config.settings import Settings
from twinlake.unit_tests.project_tests import collect, opened
from twinlake.unit_tests.running import Second, run


@dataclass(frozen=True, kw_only=True)
class UnitTests:
    """What became of the unit tests of some tables."""

    passed: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    """The title of each that failed, or that is wrong, and why."""
    waiting: int = 0
    """Those that the second engine does not evaluate: `twinlake test` has Spark run them."""


class _NeedsSpark(Exception):
    """A case that the witness does not evaluate."""


@restored()
def tested(settings: Settings, tables: Sequence[str]) -> UnitTests:
    """Of these tables, as `twinlake test` runs them."""
    if not tables:
        return UnitTests()
    collected = collect(settings.sources, tables)
    passed, waiting = 0, 0
    failed = [("a test file is wrong", error.what) for error in collected.wrong]
    with opened(collected) as world:
        for case in collected.cases:
            try:
                outcome = run(world, case, _needed)
            except _NeedsSpark:
                waiting += 1
                continue
            passed += outcome.passed
            if not outcome.passed:
                failed.append((case.title, outcome.mistake.what if outcome.mistake else outcome.failure))
    return UnitTests(passed=passed, failed=tuple(failed), waiting=waiting)


def _needed() -> Second:
    raise _NeedsSpark
