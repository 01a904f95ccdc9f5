"""An ingest that cannot be stopped in time says so, and goes on as if nobody had asked."""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace
from weakref import ref

import pytest

from tests.ingest.stage import Stage
from tests.project import OURS
from twinlake.base.errors import TimedOutError
from twinlake.base.waiting import wait_for
from twinlake.ingest import ingest
from twinlake.ingest.ingest import RETRYING, Ingest
from twinlake.topics.topic import load_topic


class BusyIngest(Ingest):
    """One whose batch under way does not end, or whose thread does not."""

    def __init__(self) -> None:
        self.topic = load_topic("orders", OURS)
        self._turn, self._ending, self._query = threading.Lock(), threading.Event(), None
        self._release = threading.Event()
        self._thread = threading.Thread(target=self._release.wait, daemon=True)
        self._thread.start()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "STOP_WAIT_S", 0.05)


def test_a_batch_that_does_not_end_is_not_waited_for_without_end() -> None:
    busy = BusyIngest()

    with busy._turn, pytest.raises(TimedOutError, match="the batch of topic orders to end took longer"):
        busy.stop()

    assert not busy._ending.is_set()


def test_a_thread_that_does_not_end_is_not_waited_for_without_end() -> None:
    busy = BusyIngest()

    with pytest.raises(TimedOutError, match="the ingest of topic orders to end took longer"):
        busy.stop()

    assert not busy._ending.is_set()
    busy._release.set()
    busy.stop()
    assert busy._ending.is_set()


def test_a_stream_that_begins_while_somebody_wants_it_to_end_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread was still opening the log; nobody else would stop what it then begins."""
    monkeypatch.setattr(ingest, "STOP_WAIT_S", 10)
    starting = BusyIngest()

    def begin() -> None:
        starting._ending.wait()
        starting._release.wait(0.3)  # the first look has found no stream
        starting._query = SimpleNamespace(stop=starting._release.set)
        starting._release.wait()

    starting._release.set()
    starting._thread.join()
    starting._release.clear()
    starting._thread = threading.Thread(target=begin, daemon=True)
    starting._thread.start()

    starting.stop()

    assert not starting._thread.is_alive()


def test_an_ingest_that_cannot_open_says_why_and_tries_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "STOP_WAIT_S", 120)
    stage.create()
    stage.orders("1")
    services = stage.settings.services_file
    away = services.rename(services.with_suffix(".away"))

    trying = stage.ingest()
    wait_for("the error", lambda: trying.error, 30)
    assert trying.state == RETRYING and trying.error and "not running" in str(trying.error)

    away.rename(services)
    stage.caught_up(trying)
    assert trying.error is None and len(stage.verdicts(trying.log)) == 1


def test_an_ingest_that_was_stopped_leaves_nothing_in_either_process(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that is reloaded, or that Kafka did not give for a while, has many of them in its time."""
    monkeypatch.setattr(ingest, "STOP_WAIT_S", 120)
    gateway = stage.spark.sparkContext._gateway
    assert gateway
    callbacks = gateway.gateway_property.pool.dict  # those that the JVM may call, by name
    others = set(callbacks)
    stage.create()
    stage.orders("1")
    read = stage.caught_up(stage.ingest())
    read.stop()
    read.start()
    stage.caught_up(read)
    read.stop()
    stage.ingests.clear()
    gone = ref(read)
    del read

    def is_collected() -> bool | None:
        gc.collect()
        gateway.jvm.System.gc()
        return True if gone() is None and not callbacks.keys() - others else None

    wait_for("its objects to go", is_collected, 30)
