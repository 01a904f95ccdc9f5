"""The mailbox: one thing at a time, in order, and errors that reach who asked."""

from __future__ import annotations

import threading

import pytest

from twinlake.speed.mailbox import ClosedMailboxError, Mailbox


def test_things_asked_by_many_threads_are_done_one_at_a_time_and_in_order() -> None:
    mailbox, inside, done = Mailbox("owner"), [], []

    def work(number: int) -> int:
        inside.append(number)
        assert len(inside) == 1
        inside.remove(number)
        done.append(number)
        return number

    futures = [mailbox.ask(lambda number=number: work(number)) for number in range(50)]

    assert [future.result(10) for future in futures] == list(range(50)) == done
    assert mailbox.close()


def test_an_error_goes_to_who_asked_and_the_next_thing_is_done() -> None:
    mailbox = Mailbox("owner")

    failed, after = mailbox.ask(lambda: 1 / 0), mailbox.ask(lambda: "went on")

    with pytest.raises(ZeroDivisionError):
        failed.result(10)
    assert after.result(10) == "went on"


def test_an_offer_is_only_taken_by_an_idle_owner() -> None:
    mailbox, go_on = Mailbox("owner"), threading.Event()
    busy = mailbox.ask(lambda: go_on.wait(10))

    assert mailbox.ask_if_idle(lambda: "taken") is None
    go_on.set()
    busy.result(10)
    mailbox.ask(lambda: None).result(10)


def test_a_closed_mailbox_finishes_what_it_does_and_refuses_the_rest() -> None:
    mailbox, begun, go_on = Mailbox("owner"), threading.Event(), threading.Event()
    doing = mailbox.ask(lambda: (begun.set(), go_on.wait(10), "finished")[-1])
    waiting = mailbox.ask(lambda: "never")
    begun.wait(10)
    closing = threading.Thread(target=mailbox.close)
    closing.start()

    with pytest.raises(ClosedMailboxError):
        waiting.result(10)
    go_on.set()
    assert doing.result(10) == "finished"
    closing.join(10)
    with pytest.raises(ClosedMailboxError):
        mailbox.ask(lambda: None)
