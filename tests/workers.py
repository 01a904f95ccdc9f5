"""How a run with `-n 2` is divided: each worker takes whole folders, those that take longest first.

What a folder shares (a broker, a SQL server) is then started once, and at the end only short ones are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

UNLISTED_S = 0.02
"""What a test takes that seconds.txt leaves out, on average."""


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def unit_of(test: str) -> str:
    """`tests/ingest/test_late.py::test_it` -> `tests/ingest`, which one worker runs from first to last."""
    return "/".join(test.partition("::")[0].split("/")[:2])


def order(tests: Iterable[str], seconds: Mapping[str, float]) -> Callable[[str], tuple[float, str]]:
    """The key that sorts them by the seconds of their units, the longest first; within one they stay."""
    units: Counter[str] = Counter()
    for test in tests:
        units[unit_of(test)] += seconds.get(test, UNLISTED_S)  # type: ignore[assignment]
    return lambda test: (-units[unit_of(test)], unit_of(test))


class ByUnit(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out units in the order in which the workers have collected them."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by their number of tests, that is

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
