"""An option that is a number takes a number in plain digits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import Result
from pydantic import Field

from tests.cli.answers import Answers
from twinlake.cli.job_options import Asked, asking
from twinlake.server.job_models import Params


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


class Counted(Params):
    """A job with a number that may be 0."""

    count: int = Field(default=3, ge=0, description="how many")


def test_a_zero_that_was_given_is_handed_over() -> None:
    found: list[Asked] = []

    @asking(Counted)
    def command(asked: Asked) -> None:
        found.append(asked)

    command(count=0)
    command(count=None)

    assert found == [{"count": 0}, {}]
