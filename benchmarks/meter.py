"""What a process and its children cost: seconds on the wall, seconds of CPU, peak memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from types import TracebackType

import psutil

SAMPLE_SECONDS = 0.25


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What some work cost; memory is the largest sum of resident sets that was seen."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int

    def to_json(self) -> dict[str, float]:
        return asdict(self)


def tree(root: psutil.Process) -> list[psutil.Process]:
    """The process and those below it; none once it has ended."""
    try:
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_seconds(processes: Iterable[psutil.Process]) -> float:
    """CPU seconds of the processes so far, with those of children that have ended and been waited for."""
    total = 0.0
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


class Meter:
    """Measures a process tree from `with` to the end of the block; `cost` is final afterwards."""

    def __init__(self, pids: list[int]) -> None:
        self.roots = [psutil.Process(pid) for pid in pids]
        self.cost = Cost(seconds=0.0, cpu_seconds=0.0, peak_bytes=0)
        self._peak = 0
        self._done = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Meter:
        self._cpu = self._cpu_seconds()
        self._started = time.perf_counter()
        self._sampler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        seconds = time.perf_counter() - self._started
        cpu = self._cpu_seconds() - self._cpu
        self._done.set()
        self._sampler.join()
        self.cost = Cost(seconds=seconds, cpu_seconds=cpu, peak_bytes=self._peak)

    def _tree(self) -> list[psutil.Process]:
        return [process for root in self.roots for process in tree(root)]

    def _cpu_seconds(self) -> float:
        return cpu_seconds(self._tree())

    def _sample(self) -> None:
        while True:
            resident = 0
            for process in self._tree():
                try:
                    resident += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            self._peak = max(self._peak, resident)
            if self._done.wait(SAMPLE_SECONDS):
                return
