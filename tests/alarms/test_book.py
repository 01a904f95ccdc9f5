"""The book: what becomes an alarm, is sent once, is over, is silenced, and outlives a kill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.alarms.figures import NOW
from twinlake.alarms import book as book_module
from twinlake.alarms import watch
from twinlake.alarms.alarm import Condition
from twinlake.alarms.book import Book, Silence
from twinlake.base.times import format_moment

LATE = Condition(kind="freshness", title="sales", what="it is 5 minutes behind", about="sales", remedy="look")
DEAD = Condition(kind="service", title="lake", what="it does not answer")


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def look(
    book: Book, found: Iterable[Condition], seconds: float, silences: Sequence[Silence] = (),
    known: bool = True,
) -> list[tuple[str, str]]:  # fmt: skip
    """What is to be sent after a look so many seconds later."""
    messages = book.look(found, {"sales": ("anna@example.com",)}, silences, at(seconds), known)
    return [(one.event, one.alarm.title) for one in messages]


def test_a_condition_that_lasts_is_an_alarm_sent_once_and_over_once_it_has_not_held_for_a_while() -> None:
    book = Book()
    sent = [look(book, [LATE], seconds) for seconds in (0, 2, 4, 6)]
    sent += [look(book, [], seconds) for seconds in (8, 20, 21, 30)]

    assert sent == [[], [("raised", "sales")], [], [], [], [], [("over", "sales")], []]
    assert book.alarms == {}


def test_a_service_that_is_started_again_in_time_is_none() -> None:
    book = Book()
    assert [look(book, [DEAD], seconds) for seconds in (0, 10, 19)] == [[], [], []]
    assert look(book, [DEAD], 20) == [("raised", "lake")]


def test_one_that_comes_and_goes_is_sent_once_and_its_words_are_those_of_now() -> None:
    book = Book()
    later = Condition(kind="freshness", title="sales", what="it is 9 minutes behind", about="sales")
    sent = [look(book, found, seconds) for seconds, found in enumerate(([LATE], [], [LATE], [], [later]))]

    assert [one for one in sent if one] == [[("raised", "sales")]]
    (alarm,) = book.alarms.values()
    assert (alarm.what, alarm.since) == ("it is 9 minutes behind", "2026-01-31T12:00:00Z")
    assert (alarm.owners, alarm.severity) == (("anna@example.com",), "warning")


def test_a_clock_that_goes_back_holds_up_no_alarm_and_keeps_none() -> None:
    """An hour, just after the condition was seen, and again just after it was seen last."""
    book = Book()
    assert [look(book, [LATE], seconds) for seconds in (7200, 3600)] == [[], []]
    assert look(book, [LATE], 3602) == [("raised", "sales")]
    assert [look(book, [], seconds) for seconds in (0, 14)] == [[], []]
    assert look(book, [], 15) == [("over", "sales")]


def test_a_book_of_a_time_to_come_says_nothing_of_now() -> None:
    assert [watch.is_old(format_moment(at(seconds)), at(0)) for seconds in (-3600, 0, 3600)] == [
        True, False, True,
    ]  # fmt: skip


def test_while_the_lake_server_is_silent_no_alarm_is_over() -> None:
    book = Book()
    for seconds in (0, 2):
        look(book, [LATE], seconds)
    assert look(book, [], 60, known=False) == [] and book.alarms
    assert look(book, [LATE], 62) == [] and look(book, [], 70) == []  # it was there all the time
    assert look(book, [], 78) == [("over", "sales")]


@pytest.mark.parametrize("what", ["freshness", "sales", "freshness/sales"])
def test_what_is_silenced_is_there_and_not_sent_until_the_silence_ends(what: str) -> None:
    book, quiet = Book(), [Silence(what=what, until="2026-01-31T12:01:00Z")]
    assert [look(book, [LATE], seconds, quiet) for seconds in (0, 2, 59)] == [[], [], []]
    assert [one.silenced for one in book.alarms.values()] == [True]

    assert look(book, [LATE], 60, quiet) == [("raised", "sales")]
    assert [one.silenced for one in book.alarms.values()] == [False]


def test_one_that_was_never_sent_is_over_in_silence_and_another_thing_is_not_silenced() -> None:
    book, quiet = Book(), [Silence(what="sales", until="2026-01-31T13:00:00Z")]
    for seconds in (0, 2):
        look(book, [LATE], seconds, quiet)
    assert look(book, [], 30, quiet) == []
    look(book, [DEAD], 40, quiet)
    assert look(book, [DEAD], 60, quiet) == [("raised", "lake")]


def test_a_kill_loses_no_alarm_sends_none_twice_and_keeps_what_is_not_sent(tmp_path: Path) -> None:
    file, book = tmp_path / "run" / "alarms.json", Book()
    look(book, [LATE], 0)
    messages = book.look([LATE], {}, [], at(2))
    book.put(("log", "webhook"), messages)
    book.sent("log", messages[0].id)
    book.save(file)
    again = Book.load(file, at(4))

    assert again.unsent == {"log": [], "webhook": messages}
    assert look(again, [LATE], 6) == []
    assert look(again, [], 8) == [] and look(again, [], 25) == [("over", "sales")]


def test_the_same_alarm_at_another_time_has_another_id_and_at_the_same_the_same(tmp_path: Path) -> None:
    ids = []
    for begin in (0, 0, 100):
        book = Book()
        look(book, [LATE], begin)
        ids += [one.id for one in book.look([LATE], {}, [], at(begin + 2))]
    assert ids[0] == ids[1] != ids[2]


def test_what_is_left_out_because_too_much_waits_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_module, "MOST_UNSENT", 2)
    book = Book()
    for number in range(4):
        one = Condition(kind="disk", title=f"d{number}", what="full")
        look(book, [one], number * 10)
        book.put(("mail",), book.look([one], {}, [], at(number * 10 + 2)))

    assert len(book.unsent["mail"]) == 2
    assert book.lost["mail"] >= 2


SINCE = '{"alarms": [{"kind": "disk", "title": "d", "what": "full", "since": "yesterday"}]}'


@pytest.mark.parametrize("content", ['{"alarms": [1]}', '{"unsent": {"log": [{}]}}', SINCE])
def test_a_book_that_cannot_be_read_is_put_aside_and_begins_anew(tmp_path: Path, content: str) -> None:
    file = tmp_path / "alarms.json"
    file.write_text(content)
    assert Book.load(file, NOW).alarms == {}
    assert not file.exists() and (tmp_path / "alarms.unread").read_text() == content


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_one_that_holds_nothing_is_empty(tmp_path: Path, content: str) -> None:
    file = tmp_path / "alarms.json"
    file.write_text(content)
    assert Book.load(file, NOW).alarms == {}


def test_one_that_was_sent_can_be_silenced_and_is_not_sent_again_after_it() -> None:
    book, quiet = Book(), [Silence(what="sales", until="2026-01-31T12:01:00Z")]
    assert [look(book, [LATE], seconds) for seconds in (0, 2)] == [[], [("raised", "sales")]]

    assert look(book, [LATE], 4, quiet) == [] and [one.silenced for one in book.alarms.values()] == [True]
    assert look(book, [LATE], 60, quiet) == [] and [one.silenced for one in book.alarms.values()] == [False]
    assert look(book, [], 75, quiet) == [("over", "sales")]


def test_that_one_is_over_which_was_sent_is_sent_in_a_silence_too() -> None:
    book, quiet = Book(), [Silence(what="sales", until="2026-01-31T13:00:00Z")]
    assert [look(book, [LATE], seconds) for seconds in (0, 2)] == [[], [("raised", "sales")]]
    assert look(book, [LATE], 4, quiet) == [] and look(book, [], 30, quiet) == [("over", "sales")]


def test_one_of_a_kind_that_this_code_does_not_know_can_be_sent() -> None:
    odd = Book()
    for seconds in (0, 2):
        messages = odd.look([Condition(kind="of later", title="x", what="y")], {}, [], at(seconds))
    assert messages[0].subject == "[Twinlake] warning: x: y"


def test_that_one_is_over_waits_behind_that_it_was_raised(tmp_path: Path) -> None:
    book, other = Book(), Condition(kind="quiet", title="orders", what="nothing comes", about="orders")
    messages = [
        one
        for seconds, found in ((0, [LATE]), (2, [LATE]), (20, [other]), (23, [other]))
        for one in book.look(found, {}, [], at(seconds))
    ]
    book.put(["hook"], messages)

    book.later("hook", book.unsent["hook"][0].id)

    waiting = [(one.event, one.alarm.title) for one in book.unsent["hook"]]
    assert waiting == [("raised", "orders"), ("raised", "sales"), ("over", "sales")]


def test_what_waits_for_a_receiver_that_is_no_more_goes(tmp_path: Path) -> None:
    book = Book()
    look(book, [LATE], 0)
    book.put(("webhook", "log"), book.look([LATE], {}, [], at(2)))
    book.keep_receivers(("log",))
    assert list(book.unsent) == ["log"] and len(book.unsent["log"]) == 1
