"""By which moment the oracle judges a table over the last minutes, and which moments it refuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.oracle.gallery.__main__ import lately
from tests.oracle.gallery.clicks import songs_lately
from tests.oracle.watermark import Watermark

AT = datetime(2026, 2, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def bounds(low: datetime | None, high: datetime | None) -> Watermark:
    return Watermark(low=low and _ms(low), high=high and _ms(high))


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


@pytest.mark.parametrize("seconds", [0, 59])
def test_a_moment_within_the_bounds_is_the_platform_s_to_say(seconds: int) -> None:
    between = bounds(AT + timedelta(seconds=seconds), AT + 2 * MINUTE)

    assert [lately(AT + minutes * MINUTE, between) for minutes in range(3)] == [
        (AT + minutes * MINUTE, "") for minutes in range(3)
    ]


@pytest.mark.parametrize("end", [AT - MINUTE, AT + 3 * MINUTE])
def test_a_moment_beyond_them_is_refused(end: datetime) -> None:
    moment, why = lately(end, bounds(AT, AT + 2 * MINUTE))

    assert moment == AT and str(end) in why


def test_a_table_without_rows_is_judged_by_the_least_watermark() -> None:
    play = {"song": "s", "played_at": AT - MINUTE}

    moment, why = lately(None, bounds(AT, AT))

    assert (moment, why) == (AT, "")
    assert songs_lately([play], moment), "what is expected then is not nothing"
    assert lately(None, bounds(None, AT)) == (None, "")
