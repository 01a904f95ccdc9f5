"""A reader who never stops asking: each answer must be an expected one as a whole, never a mixture."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from twinlake.base.errors import TimedOutError
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services
from twinlake.reading.client import ask

Answer = dict[str, tuple[int, str]]  # by region: orders, sales
PAUSE_SECONDS = 0.75
SOON_SECONDS = 15.0


@dataclass(frozen=True, kw_only=True)
class Range:
    """Windows that get no more records, so that each definition has exactly one right answer for them."""

    start_ms: int
    end_ms: int

    @classmethod
    def of_minutes(cls, start_ms: int, end_ms: int) -> Range:
        """The whole minutes inside, because windows are minutes."""
        return cls(start_ms=-(-start_ms // 60_000) * 60_000, end_ms=end_ms // 60_000 * 60_000)

    def sql(self, column: str) -> str:
        return f"{column} >= timestamp_millis({self.start_ms}) AND {column} < timestamp_millis({self.end_ms})"


def served(services: Services, windows: Range) -> Answer:
    """What the view shows for the windows."""
    found = ask(
        services,
        "SELECT region, cast(sum(orders) AS bigint) AS orders, cast(sum(sales) AS string) AS sales "
        f"FROM serve.sales_per_region WHERE {windows.sql('window_start')} GROUP BY region",
    )
    return {row["region"]: (row["orders"], row["sales"]) for row in found["rows"]}


def expected(services: Services, windows: Range) -> tuple[Answer, Answer]:
    """What the old and the new definition must show, from the events: with and without cancelled orders."""
    found = ask(
        services,
        "SELECT region, count(*) AS orders, cast(sum(amount) AS string) AS sales, "
        "count_if(status <> 'cancelled') AS kept, "
        "cast(sum(amount) FILTER (WHERE status <> 'cancelled') AS string) AS kept_sales "
        f"FROM serve.orders WHERE {windows.sql('ordered_at')} GROUP BY region",
    )
    old = {row["region"]: (row["orders"], row["sales"]) for row in found["rows"]}
    new = {row["region"]: (row["kept"], row["kept_sales"]) for row in found["rows"] if row["kept"]}
    return old, new


@dataclass(kw_only=True)
class Reader:
    """Polls in a thread of its own from `start` to `stop`."""

    ask: Callable[[], Answer]
    answers: dict[str, Answer]
    pause_s: float = PAUSE_SECONDS
    phases: list[str] = field(default_factory=list)
    reads: dict[str, int] = field(default_factory=dict)
    mixtures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="reader", daemon=True)

    def start(self) -> Reader:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(120)

    def saw(self, phase: str) -> bool:
        """Whether the newest answer is of that phase, now or soon."""
        try:
            wait_for(f"the {phase} answer", lambda: self.phases[-1:] == [phase] or None, SOON_SECONDS)
        except TimedOutError:
            return False
        return True

    def figures(self) -> dict[str, Any]:
        slowest = statistics.quantiles(self.latencies, n=20) if len(self.latencies) > 1 else [0.0] * 19
        return {
            "reads": sum(self.reads.values()),
            "by_answer": dict(self.reads),
            "order_of_answers": " then ".join(self.phases),
            "mixtures": len(self.mixtures),
            "errors": len(self.errors),
            "latency_p50_s": round(slowest[9], 2),
            "latency_p95_s": round(slowest[18], 2),
        }

    def _poll(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                answer = self.ask()
            except Exception as error:  # an error is a finding: it is kept, and the next read goes on
                self.errors.append(f"{type(error).__name__}: {error}")
            else:
                self.latencies.append(time.monotonic() - began)
                self._judge(answer)
            self._stop.wait(self.pause_s)

    def _judge(self, answer: Answer) -> None:
        phase = next((name for name, known in self.answers.items() if known == answer), None)
        if phase is None:
            self.mixtures.append(str(sorted(answer.items())[:3]))
            return
        self.reads[phase] = self.reads.get(phase, 0) + 1
        if not self.phases or self.phases[-1] != phase:
            self.phases.append(phase)
