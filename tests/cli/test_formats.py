"""Every command that reads the lake itself refuses one that it cannot read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.answers import PLAN, Answers

READING = [
    ("releases",), ("build",), ("diff",), ("diff", PLAN.id), ("gate",), ("promote",),
]  # fmt: skip
NEWER = '{"id": "x", "format": 99, "needs": "9.0.0"}'


@pytest.mark.parametrize("command", READING, ids=" ".join)
@pytest.mark.parametrize(
    ("told", "remedy"),
    [(NEWER, "use Twinlake 9.0.0 or newer"), ('{"id": "x"}', "`twinlake up`"), ("{", "put that file back")],
)
def test_a_command_refuses_a_lake_that_it_cannot_read(
    home: Path, twinlake: Callable[..., Result], command: tuple[str, ...], told: str, remedy: str
) -> None:
    (home / "lake" / "lake.json").write_text(told)

    done = twinlake(Answers(), *command)

    assert done.exit_code == 1 and remedy in str(done.exception)
