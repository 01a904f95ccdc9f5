"""^C where Spark is spoken to: py4j makes an error of a KeyboardInterrupt, and lets Interrupted pass."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_FINALIZING = ("<lambda>", "_garbage_collect_object")
"""What py4j calls when an object of Java's is forgotten."""
AGAIN_S = 0.05


class Interrupted(SystemExit):
    """Somebody has pressed ^C; the process ends with 130."""


def leave_at_once() -> None:
    """From here on ^C raises Interrupted: for a command that starts Spark, in the main thread."""

    def leave(number: int, frame: FrameType | None) -> None:
        if _is_finalizing(frame):  # Python ignores what is raised there, and ^C would be lost
            again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
            return
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


def _is_finalizing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in _FINALIZING and frame.f_globals.get("__name__") == "py4j.java_gateway":
            return True
        frame = frame.f_back
    return False
