"""An option that is a number takes a number in plain digits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import Result

from tests.cli.answers import Answers


@pytest.mark.parametrize(
    "command",
    [("rollback", "--to"), ("retire", "--keep"), ("releases", "--limit"), ("jobs", "list", "--limit"),
     ("query", "SELECT 1", "--limit"), ("quarantine", "orders", "--limit"), ("produce", "orders", "--count")],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("wrong", ["true", "1.0", "", "nan", "-1", "1e3"])
def test_an_option_that_is_a_number_takes_nothing_else(
    twinlake: Callable[..., Result], command: tuple[str, ...], wrong: str
) -> None:
    assert twinlake(Answers(), *command, wrong).exit_code == 2
