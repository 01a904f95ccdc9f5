"""A reader's position is text that comes back as it went, or is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.history import LATEST, version_of
from twinlake.base.errors import UsageError
from twinlake.lake.catalog.version import Pin
from twinlake.reading.changes.position import EVERYTHING, parse, position_of

VERSION = version_of(LATEST)
STORED = Pin(
    version=VERSION, position={"shop.orders-2": 120}, watermarks={"shop.orders-2": 7},
    clocks={"shop.orders-2": {"processing_time": 9}}, delta_version=131, step=5,
)  # fmt: skip
OVER = Pin(
    version=VERSION, position={"a": 1, "b": 2}, reads={"y": replace(STORED, delta_version=4), "x": STORED}
)
OF_LOGS = Pin(version=VERSION, position={"a": 12})


@pytest.mark.parametrize(
    ("pin", "begins"),
    [
        (STORED, "latest_order.7.shop.orders-2=120.131."),
        (OVER, "latest_order.7.a=1,b=2.131-4."),
        (OF_LOGS, "latest_order.7.a=12.."),
    ],
)
def test_a_position_comes_back_as_it_went(pin: Pin, begins: str) -> None:
    position = position_of("latest_order", 7, pin)

    assert position.text.startswith(begins)
    assert parse("latest_order", position.text) == position
    mine = position.of(EVERYTHING)
    assert mine.text.startswith(f"{begins}{position.identity}.")
    assert parse("latest_order", mine.text) == mine


def test_a_position_is_of_those_who_see_the_same() -> None:
    position = position_of("latest_order", 7, STORED)

    assert position.of("some").is_of("some") and not position.of("some").is_of(EVERYTHING)
    assert not position.of(EVERYTHING).is_of("some")
    assert not any(position.is_of(like) for like in (EVERYTHING, "some"))  # as before rights were in it


def test_a_position_of_another_table_says_of_which() -> None:
    with pytest.raises(UsageError) as refused:
        parse("sales", position_of("latest_order", 7, STORED).text)

    assert refused.value.what.endswith("is not a position of sales")
    assert refused.value.why == "it is one of latest_order"


def test_the_past_of_another_lake_is_another_one() -> None:
    here = position_of("latest_order", 7, STORED)
    elsewhere = replace(STORED, clocks={"shop.orders-2": {"processing_time": 10}})

    assert position_of("latest_order", 7, elsewhere).identity != here.identity
    assert position_of("latest_order", 7, replace(STORED)).text == here.text


def test_any_other_text_is_refused() -> None:
    text = position_of("latest_order", 7, STORED).of(EVERYTHING).text
    for at in range(len(text)):  # a letter that is gone, and one that is another
        for other in (text[:at] + text[at + 1 :], f"{text[:at]}{chr(ord(text[at]) ^ 1)}{text[at + 1 :]}"):
            with pytest.raises(UsageError, match="is not a position"):
                parse("latest_order", other)
    for other in ("", ".", "beginning", "latest_order.7", text + "\n", " " + text, text.upper()):
        with pytest.raises(UsageError, match="is not a position"):
            parse("latest_order", other)
