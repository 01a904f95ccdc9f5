"""What heavy work needed goes back to the machine when the process has been quiet, and not before."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from twinlake.spark import unused_memory
from twinlake.spark.unused_memory import (
    AGAIN_S,
    GROWN_BYTES,
    LOOK_S,
    QUIET_CORES,
    QUIET_S,
    UnusedMemory,
    Use,
    used,
)  # fmt: skip

START = Use(cpu_s=10.0, resident=400 * 2**20)
GROWN = START.resident + GROWN_BYTES
LOOKS = int(QUIET_S / LOOK_S)
LATER = int(AGAIN_S / LOOK_S)


class Machine:
    """A process that gives back all that it has grown by, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.use, self.asked, self.fails = START, 0, False
        self.memory = UnusedMemory(lambda: self.use, self._give_back)

    def _give_back(self) -> None:
        self.asked += 1
        if self.fails:
            raise OSError("not now")
        self.use = Use(cpu_s=self.use.cpu_s + 10.0, resident=START.resident)

    def goes_on(self, looks: int, cores: float = 0.0) -> None:
        for _ in range(looks):
            self.use = replace(self.use, cpu_s=self.use.cpu_s + cores * LOOK_S)
            with suppress(OSError):
                self.memory.look(LOOK_S)

    def has(self, resident: int) -> None:
        self.use = replace(self.use, resident=resident)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_memory_goes_back_after_minutes_of_quiet_and_once(machine: Machine) -> None:
    machine.has(GROWN)
    machine.goes_on(LOOKS - 1, cores=0.3)
    assert machine.asked == 0

    machine.goes_on(1, cores=0.3)
    assert machine.asked == 1

    machine.goes_on(2 * LATER, cores=0.3)
    assert machine.asked == 1, "it has not grown since"

    machine.has(GROWN)
    machine.goes_on(1, cores=0.3)
    assert machine.asked == 2, "it has been quiet all the time"


def test_what_grows_again_at_once_waits(machine: Machine) -> None:
    machine.has(GROWN)
    machine.goes_on(LOOKS)
    machine.has(GROWN)
    machine.goes_on(LATER - 1)
    assert machine.asked == 1

    machine.goes_on(1)
    assert machine.asked == 2


def test_work_puts_it_off(machine: Machine) -> None:
    machine.has(GROWN)
    for _ in range(3):
        machine.goes_on(LOOKS - 1)
        machine.goes_on(1, cores=QUIET_CORES)

    assert machine.asked == 0


def test_the_collection_itself_is_no_work(machine: Machine) -> None:
    machine.has(GROWN)
    machine.goes_on(LOOKS + LATER - 1)
    machine.has(GROWN)
    machine.goes_on(1)

    assert machine.asked == 2


def test_what_would_bring_little_is_not_done(machine: Machine) -> None:
    machine.has(GROWN - 1)
    machine.goes_on(2 * LOOKS)

    assert machine.asked == 0


def test_growth_counts_from_where_memory_was_least(machine: Machine) -> None:
    machine.has(START.resident - GROWN_BYTES)
    machine.goes_on(LOOKS)
    machine.has(START.resident)
    machine.goes_on(1)

    assert machine.asked == 1


def test_one_that_fails_is_tried_again_later(machine: Machine) -> None:
    machine.fails = True
    machine.has(GROWN)
    machine.goes_on(LOOKS + LATER - 1)
    assert machine.asked == 1

    machine.fails = False
    machine.goes_on(1)
    assert machine.asked == 2 and machine.use.resident == START.resident


def test_what_is_used_is_the_sum_of_both_processes() -> None:
    own, other = psutil.Process(), psutil.Process(psutil.Process().ppid())

    both = used((own, other))

    parts = [used((one,)) for one in (own, other)]
    assert both.resident == pytest.approx(sum(one.resident for one in parts), rel=0.05)
    assert both.cpu_s == pytest.approx(sum(one.cpu_s for one in parts), rel=0.05)
    assert parts[0].resident > 2**20


def test_java_gives_back_the_heap_that_it_needed_and_then_makes_room_as_before(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    process, heap = psutil.Process(spark.sparkContext._gateway.proc.pid), jvm.java.lang.Runtime.getRuntime()
    limit = jvm.twinlake.lake.UnusedMemory.mostFree()
    text = jvm.java.lang.StringBuilder()
    text.ensureCapacity(400 * 2**20)
    jvm.java.lang.System.gc()  # it lives among the old ones now
    full, committed = process.memory_info().rss, heap.totalMemory()
    text.trimToSize()

    unused_memory.give_back(jvm)

    assert process.memory_info().rss < full - 150 * 2**20
    assert heap.totalMemory() < committed - 150 * 2**20
    assert jvm.twinlake.lake.UnusedMemory.mostFree() == limit != "20"
