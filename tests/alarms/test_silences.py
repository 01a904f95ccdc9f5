"""Silences: what is kept of several commands, whenever they come."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.alarms.figures import NOW
from twinlake.alarms import silences
from twinlake.alarms.book import Silence
from twinlake.base.errors import NotFoundError
from twinlake.base.times import format_moment
from twinlake.config.settings import Settings

HOUR = timedelta(hours=1)
MADE = Silence(what="disk", until=format_moment(NOW + HOUR), reason="a test", by="anna")


def names(settings: Settings) -> list[str]:
    return sorted(one.what for one in silences.load(settings))


def test_commands_that_come_in_one_moment_lose_none(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    first = [f"a{number}" for number in range(20)]
    for what in first:
        silences.add(settings, replace(MADE, what=what), NOW)

    def both(number: int) -> None:
        silences.add(settings, replace(MADE, what=f"b{number}"), NOW)
        silences.end(settings, f"a{number}")

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(both, number) for number in range(20)]:
            done.result()

    assert names(settings) == sorted(f"b{number}" for number in range(20))


def test_one_of_the_same_is_replaced_what_has_ended_goes_and_what_is_none_is_said(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    silences.add(settings, replace(MADE, what="old"), NOW)
    silences.add(settings, replace(MADE, until=format_moment(NOW + 3 * HOUR)), NOW)
    silences.add(settings, replace(MADE, until=format_moment(NOW + 4 * HOUR)), NOW + 2 * HOUR)

    assert [(one.what, one.until) for one in silences.load(settings)] == [
        ("disk", format_moment(NOW + 4 * HOUR))
    ]  # fmt: skip
    with pytest.raises(NotFoundError, match="old is not silenced"):
        silences.end(settings, "old")
