"""Figures: what the services say of themselves, asked when somebody looks and kept with its age.

However many browsers look, each source is asked once in so many seconds; while nobody looks, nobody is asked.
A source that does not answer keeps nobody waiting for long: its last answer is shown, with how old it is.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from twinlake.base.errors import TwinlakeError
from twinlake.config.settings import Settings
from twinlake.server.client import LakeClient
from twinlake.services.supervise import control, record

T = TypeVar("T")
OLD_S = 30.0
"""What is older says nothing of now."""
LAKE_EVERY_S = 2.0
SERVICES_EVERY_S = 10.0
"""To ask all of them costs Airflow and the broker more than the console: what runs tells of itself less often
than what it does."""
PATIENCE_S = 2.0
FIRST_S = 4.0
"""So long a page waits where nothing is known yet. Home asks two sources, and takes the console for dead
after ten seconds."""


@dataclass(frozen=True, kw_only=True)
class Seen(Generic[T]):
    """The last answer of a source, how old it is, and why there is none since."""

    value: T | None = None
    age_s: float | None = None
    error: TwinlakeError | None = None

    @property
    def is_old(self) -> bool:
        return self.age_s is None or self.age_s > OLD_S


class Source(Generic[T]):
    """Asks at most once in `every_s`, in a thread of its own. Thread-safe."""

    def __init__(
        self, ask: Callable[[], T], every_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._every_s = every_s
        self._clock = clock
        self._changed = threading.Condition()
        self._asking = False
        self._asked_at: float | None = None
        self._value: T | None = None
        self._at: float | None = None
        self._error: TwinlakeError | None = None

    def seen(self) -> Seen[T]:
        """What is known; waits a little for an answer that is on its way."""
        with self._changed:
            is_due = self._asked_at is None or self._clock() - self._asked_at >= self._every_s
            if is_due and not self._asking:
                self._asking, self._asked_at = True, self._clock()
                threading.Thread(target=self._look, name="figures", daemon=True).start()
            self._changed.wait_for(lambda: not self._asking, FIRST_S if self._at is None else PATIENCE_S)
            age = None if self._at is None else self._clock() - self._at
            return Seen(value=self._value, age_s=age, error=self._error)

    def forget(self) -> None:
        """The next to look asks again, whenever that was done last."""
        with self._changed:
            self._asked_at = None

    def _look(self) -> None:
        value, error = None, None
        began = self._clock()
        try:
            value = self._ask()
        except TwinlakeError as known:
            error = known.alone()
        except Exception as unknown:  # a page has to be shown all the same, with what went wrong
            why = f"{type(unknown).__name__}: {unknown}"[:300]
            error = TwinlakeError("the figures could not be read", why)
        with self._changed:
            self._error = error
            if error is None:
                self._value, self._at = value, began
            self._asking = False
            self._changed.notify_all()


@dataclass(frozen=True, kw_only=True)
class Services:
    """What runs for the data directory, its parts as `control.describe` has them; the room on its disk."""

    parts: list[dict[str, Any]]
    supervisor: TwinlakeError | None
    disk_free: int
    disk_total: int


@lru_cache(maxsize=4)
def _client(url: str, token: str) -> LakeClient:
    """**why** kept: a new client reads the system's certificates, 30 ms of CPU each time."""
    return LakeClient(url, token)


def lake_client(settings: Settings) -> LakeClient:
    """A client of the lake server where it is now; UnreachableError where nothing was started."""
    services = settings.services()
    if not services.api_url:
        return LakeClient.of(services)  # which says so
    return _client(services.api_url, services.api_token)


def services_of(settings: Settings) -> Services:
    """Asks every service; none of them is asked for anything of the lake's."""
    disk = shutil.disk_usage(settings.home)
    return Services(
        parts=control.describe(settings), supervisor=record.supervisor_error(settings), disk_free=disk.free,
        disk_total=disk.total,
    )  # fmt: skip
