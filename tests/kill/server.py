"""The lake server as a process of its own, beside a real broker: started, asked, killed as a crash would."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from deltalake import DeltaTable

from records import FaultShares, Sample
from tests.broker import Broker, free_port
from tests.project import PROJECT, TABLES
from tests.registry import FakeRegistry
from twinlake.base.breakpoints import Point
from twinlake.base.errors import TimedOutError
from twinlake.base.location import Location, Remote
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services
from twinlake.lake.delta.delta import LOG_FOLDER
from twinlake.lake.storage import store
from twinlake.server.client import LakeClient
from twinlake.topics.kafka import Kafka
from twinlake.topics.produce import produce

SCHEMA_ID = 1
WITNESSED = '[proof]\nwitness = "required"\n'
"""No release of a test that another engine does not confirm."""


@contextmanager
def lake_process(folder: Path, seed: int = 0, lake: Remote | None = None) -> Iterator[LakeProcess]:
    """A lake server to be started, with a broker and a registry of its own; all end with the block. Its lake
    is in its home, or where it is told."""
    broker, registry = Broker(folder / "broker").start(), FakeRegistry()
    made = LakeProcess(folder / "home", broker, registry, seed, lake)
    try:
        yield made
    finally:
        if made.running:
            made.kill()
        broker.stop()
        registry.close()


class LakeProcess:
    """`seed` draws the records that it produces."""

    def __init__(
        self, home: Path, broker: Broker, registry: FakeRegistry, seed: int = 0, lake: Remote | None = None
    ) -> None:
        self.home, self.broker = home, broker
        self.lake: Location = lake or home / "lake"
        self.breakpoints = home / "breakpoints"
        self.port, self.produced, self.seed = free_port(), 0, seed
        self.command = ["-m", "twinlake.server"]
        home.mkdir(parents=True)
        # what is in a store is not witnessed
        settings = f'[lake]\nuri = "{lake}"\n' if lake else WITNESSED
        (home / "twinlake.toml").write_text(settings)
        schema = json.loads((PROJECT / "schemas" / "orders.v1.avsc").read_text())
        registry.add("orders-value", SCHEMA_ID, schema)
        Kafka(broker.login).create("orders")
        self.services = Services(
            bootstrap_servers=broker.bootstrap, registry_url=registry.url, lake=str(self.lake),
            api_url=f"http://127.0.0.1:{self.port}", api_token=secrets.token_urlsafe(32),
        )  # fmt: skip
        self.services.save(home / "services.json")
        self.client = LakeClient.of(self.services)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, wait_s: float = 240) -> LakeProcess:
        with (self.home / "lake.log").open("ab") as out:
            command = [sys.executable, *self.command, "--home", str(self.home)]
            command += ["--port", str(self.port), "--breakpoints", str(self.breakpoints)]
            self.process = subprocess.Popen(
                command, cwd=PROJECT, stdout=out, stderr=out, start_new_session=True
            )
        self.until(self._ready, wait_s)
        return self

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """kill -9 of Python and its JVM at the same moment; no breakpoint is left."""
        assert self.process
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for asked in self.breakpoints.glob("*"):
            asked.unlink()

    def kill_python(self) -> psutil.Process:
        """kill -9 of Python alone; the JVM that it leaves."""
        assert self.process
        jvm = self._jvm()
        self.process.kill()
        self.process.wait()
        return jvm

    def kill_jvm(self) -> int:
        """kill -9 of the JVM alone; the exit code of the Python that it leaves."""
        assert self.process
        self._jvm().kill()
        return self.process.wait(60)

    def stop_at(self, point: Point, table: str = "") -> None:
        """Have it stop there the next time that it comes by (with the work of this table)."""
        self.breakpoints.mkdir(exist_ok=True)
        (self.breakpoints / point).write_text(table)

    def until_stopped_at(self, point: Point) -> None:
        self.until((self.breakpoints / f"{point}.reached").exists, every_s=0.02)

    def let_go(self, point: Point) -> None:
        """What has stopped there goes on."""
        (self.breakpoints / f"{point}.reached").unlink()

    def killed_at(self, point: Point, records: int) -> None:
        """With the work of so many new records; and up again, when as many more have come."""
        self.stop_at(point)
        self.produce(records)
        self.until_stopped_at(point)
        self.kill()
        self.produce(records)
        self.start()

    def broker_killed_at(self, point: Point, records: int) -> None:
        """The same of the broker, while this server waits there."""
        self.stop_at(point)
        self.produce(records)
        self.until_stopped_at(point)
        self.broker.kill()
        self.let_go(point)
        self.broker.start()
        self.produce(records)

    def second(self) -> subprocess.CompletedProcess[str]:
        """Another server on the same lake; it ends by itself."""
        command = [sys.executable, "-m", "twinlake.server", "--home", str(self.home)]
        command += ["--port", str(free_port())]
        return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=120)

    def do(self, kind: str, /, key: str | None = None, **params: Any) -> dict[str, Any]:
        """One job to its end; its result."""
        return self.client.follow(self.client.submit(kind, params, key).id).succeeded()

    def release(self) -> None:
        """Build the project's tables and make them live."""
        plan = self.do("plan", definitions={table.name: table.to_json() for table in TABLES})["id"]
        self.do("build", plan=plan)
        self.do("promote", plan=plan, approved_by="test")

    def produce(self, count: int) -> None:
        self.produced += count
        sample = Sample(
            seed=self.seed + self.produced, run=f"run{self.produced}", schema_id=SCHEMA_ID, span_ms=3_600_000,
            faults=FaultShares(),
        )  # fmt: skip
        produce(
            sample, login=self.broker.login, topic="orders", count=count, rate=None,
            stop=threading.Event(), report=lambda sent: None,
        )  # fmt: skip

    def until(self, true: Callable[[], bool], seconds: float = 120, every_s: float = 0.2) -> None:
        """Wait for it, while the server lives."""

        def look() -> bool | None:
            assert self.running, "the lake server has ended"
            return True if true() else None

        try:
            wait_for("the lake server", look, seconds, every_s=every_s)
        except (AssertionError, TimedOutError) as error:
            raise AssertionError(str(error), (self.home / "lake.log").read_text()[-4000:]) from error

    def caught_up(self) -> bool:
        """The log has every record that was produced, and every version has the log."""
        status = self.client.status()
        batches = {topic["name"]: topic["batch"] for topic in status["topics"]}
        return sum(topic["records"] for topic in status["topics"]) == self.produced and all(
            version["position"] == {topic: batches[topic] for topic in version["position"]}
            for version in status["versions"]
        )

    def until_at_end(self, workers: str, seconds: float = 120) -> None:
        """The one changelog, or published table, is where the log is, in the live release."""

        def there() -> bool:
            status = self.client.status()
            (one,) = status[workers]
            (topic,) = status["topics"]
            at = {"orders": topic["batch"]}
            return (one["position"], one["release"]) == (at, status["release"]["number"])

        self.until(self.caught_up)
        self.until(there, seconds)

    def valid_events(self) -> list[tuple[int, dict[str, Any]]]:
        """Of the log of orders, each with its batch."""
        records = DeltaTable(str(self.lake / "logs" / "orders")).to_pyarrow_table(
            columns=["batch", "verdict", "event"]
        )
        return [(one["batch"], one["event"]) for one in records.to_pylist() if one["verdict"] == "valid"]

    def files(self, place: str, ending: str) -> int:
        """How many data files with this ending a table of the lake has, in whichever partition."""
        found = store.tree(self.lake / place)
        return sum(1 for name in found if name.endswith(ending) and LOG_FOLDER not in name)

    def _jvm(self) -> psutil.Process:
        assert self.process
        (found,) = (one for one in psutil.Process(self.process.pid).children() if one.name() == "java")
        return found

    def _ready(self) -> bool:
        try:
            return bool(httpx.get(f"{self.services.api_url}/health", timeout=2).json()["ready"])
        except httpx.HTTPError:
            return False
