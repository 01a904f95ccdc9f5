"""^C where Spark is spoken to: py4j makes an error of a KeyboardInterrupt, and lets Interrupted pass."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(SystemExit):
    """Somebody has pressed ^C; the process ends with 130."""


def leave_at_once() -> None:
    """From here on ^C raises Interrupted: for a command that starts Spark, in the main thread."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise Interrupted(128 + number)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, leave)


@contextmanager
def restored() -> Iterator[None]:
    """After it ^C does what it did before it; also for functions: `@restored()`."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
