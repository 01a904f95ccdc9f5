"""Work that goes on, over and over, in a thread beside what is measured."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def alongside(work: Callable[[], None]) -> Iterator[None]:
    """`work` is done again and again until the block ends; what it raises is raised at the block's end."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            work()

    with ThreadPoolExecutor(1) as threads:
        repeated = threads.submit(repeat)
        try:
            yield
        finally:
            stop.set()
        repeated.result()
