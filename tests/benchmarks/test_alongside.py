"""What goes on beside a measurement ends with it, and its failure is not a good figure."""

from __future__ import annotations

import threading
import time

import pytest

from benchmarks.alongside import alongside


def test_work_goes_on_until_the_block_ends() -> None:
    done, often = [], threading.Event()

    def work() -> None:
        done.append(1)
        if len(done) > 2:
            often.set()

    with alongside(work):
        assert often.wait(10)

    before = len(done)
    time.sleep(0.05)
    assert len(done) == before


def test_what_the_work_raises_is_raised_at_the_end_of_the_block() -> None:
    def work() -> None:
        raise ValueError("it does not work")

    reached = False
    with pytest.raises(ValueError, match="does not work"), alongside(work):
        reached = True
    assert reached
