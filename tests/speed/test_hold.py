"""A hold on an owner's mailbox: how long it lasts, and what its holder is told."""

from __future__ import annotations

import pytest

from twinlake.speed.mailbox import ClosedMailboxError, Mailbox
from twinlake.speed.pause import Held, Hold


def stand(mailbox: Mailbox, hold: Hold):
    asked = mailbox.ask(lambda: hold.stand(7))
    asked.add_done_callback(hold.refuse)
    return asked


def test_a_version_stands_still_until_it_is_given_back() -> None:
    mailbox, hold = Mailbox("owner"), Hold(60)
    stand(mailbox, hold)
    step = mailbox.ask(lambda: "a step")

    assert hold.at.result(10) == 7
    assert hold.renew() and not step.done()
    hold.give_back()
    assert step.result(10) == "a step"
    assert not hold.renew()


def test_a_hold_that_is_not_renewed_lapses_and_says_so_for_ever() -> None:
    mailbox, hold = Mailbox("owner"), Hold(0.05)
    standing = stand(mailbox, hold)

    standing.result(10)

    assert not hold.renew() and not Held([{"orders": 7}], [hold]).renew()


def test_a_renewed_hold_outlasts_its_first_limit() -> None:
    mailbox, hold = Mailbox("owner"), Hold(0.5)
    standing = stand(mailbox, hold)
    hold.at.result(10)

    for _ in range(4):
        with pytest.raises(TimeoutError):
            standing.result(0.2)
        assert hold.renew()

    hold.give_back()
    standing.result(10)


def test_a_hold_given_back_before_the_version_stands_never_stops_it() -> None:
    mailbox, hold = Mailbox("owner"), Hold(60)

    hold.give_back()
    stand(mailbox, hold).result(10)

    assert not hold.at.done() and not hold.renew()


def test_the_holder_of_a_version_that_was_retired_is_told_why() -> None:
    mailbox, first, second = Mailbox("owner"), Hold(60), Hold(60)
    stand(mailbox, first)
    first.at.result(10)
    stand(mailbox, second)

    mailbox.close(wait_s=0)

    with pytest.raises(ClosedMailboxError):
        second.at.result(10)
    first.give_back()
