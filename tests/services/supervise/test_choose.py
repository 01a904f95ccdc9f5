"""Which parts `up` starts."""

from __future__ import annotations

import pytest

from twinlake.base.errors import UsageError
from twinlake.services.supervise.control import choose


def names(only: list[str], without: list[str]) -> list[str]:
    return [part.name for part in choose(only, without)]


def test_a_service_brings_what_it_needs() -> None:
    assert {"broker", "registry", "topics"} <= set(names(["lake"], []))
    assert "broker" not in names(["sql"], [])


@pytest.mark.parametrize(
    ("only", "without", "words"),
    [
        (["lkae"], [], "no service lkae"),
        ([], ["lkae"], "no service lkae"),
        (["sql"], ["sql"], "left to start"),
    ],
)
def test_a_wrong_choice_is_refused(only: list[str], without: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        choose(only, without)
