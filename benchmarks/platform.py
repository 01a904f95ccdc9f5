"""A Twinlake of the benchmark's own: real services in a folder of their own, seen only through their doors.

How far ingest and the tables are is read from the Delta commits, which costs the lake server nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Consumer, TopicPartition

from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services, Settings
from twinlake.config.settings_file import without_overrides
from twinlake.lake.catalog.maintained_version import stores_rows
from twinlake.lake.catalog.version import stored_versions
from twinlake.lake.delta import delta
from twinlake.server.client import LakeClient
from twinlake.topics.registry import Registry

START_SECONDS = 150.0
POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Steps:
    """How many steps of tables were computed in memory, and how many by Spark's tasks, which costs 11 us a
    record more."""

    in_memory: int
    by_spark: int


class BenchmarkError(Exception):
    """The benchmark cannot go on."""


def command(settings: Settings, *arguments: str) -> dict[str, Any]:
    """What `subprocess` has to be given to run a command of Twinlake on this home."""
    return {
        "args": [sys.executable, "-m", "twinlake", *arguments],
        "cwd": settings.project.root,
        "env": {**without_overrides(os.environ), "TWINLAKE_HOME": str(settings.home)},
    }


def refuse_failure(returncode: int, *arguments: str) -> None:
    """BenchmarkError where a command has failed."""
    if returncode:
        raise BenchmarkError(f"`twinlake {' '.join(arguments)}` ended with exit code {returncode}")


def twinlake(settings: Settings, *arguments: str) -> None:
    """Run a command of Twinlake on this home; BenchmarkError where it fails."""
    done = subprocess.run(
        **command(settings, *arguments), stdout=subprocess.DEVNULL, timeout=START_SECONDS
    )  # fmt: skip
    refuse_failure(done.returncode, *arguments)


class Platform:
    """Started by `with`, stopped and removed at its end; whatever an earlier run left is removed first."""

    topic = "orders"

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.services = Services()

    def __enter__(self) -> Platform:
        self._remove()
        self.start()
        self._consumer = Consumer({**self.services.kafka("ingest").client(), "group.id": "twinlake-bench"})
        return self

    def __exit__(self, *raised: object) -> None:
        self._consumer.close()
        self.stop()

    def start(self) -> None:
        """Everything but Airflow; ports and passwords stay those of the first time."""
        self._twinlake("up", "--without", "airflow")
        self.services = self.settings.services()
        self.client = LakeClient.of(self.services)

    def stop(self) -> None:
        self._twinlake("down")

    def _remove(self) -> None:
        if self.settings.home.exists():
            self.stop()
            shutil.rmtree(self.settings.home)

    def _twinlake(self, *arguments: str) -> None:
        twinlake(self.settings, *arguments)

    @property
    def schema_id(self) -> int:
        """The id of the newest registered schema of the topic."""
        return max(Registry(self.services.registry()).schemas(f"{self.topic}-value"))

    def ends(self) -> dict[int, int]:
        """The offset after the newest record of each partition."""
        known = self._consumer.list_topics(self.topic, timeout=10).topics[self.topic]
        return {
            number: self._consumer.get_watermark_offsets(TopicPartition(self.topic, number), timeout=10)[1]
            for number in sorted(known.partitions)
        }

    def process(self, module: str) -> int:
        """The pid of the part that runs `module` for this home, the outermost of its tree."""
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if module in words and str(self.settings.home) in words:
                return int(process.pid)
        raise BenchmarkError(f"no process runs {module} for {self.settings.home}")

    def lake_server(self) -> list[psutil.Process]:
        """Its process and those that it has started."""
        return self.tree("twinlake.server")

    def tree(self, module: str) -> list[psutil.Process]:
        """The process that runs `module`, and those that it has started."""
        root = psutil.Process(self.process(module))
        return [root, *root.children(recursive=True)]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The lake server stands still, warm as it is, while the topic fills or the rival has the machine."""
        tree = self.lake_server()
        for process in tree:
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in reversed(tree):
                process.send_signal(signal.SIGCONT)

    def caught_up(self, ends: dict[int, int], limit_s: float) -> None:
        """Wait until the log and every living version hold all records below `ends`."""
        wait_for(
            f"the tables to reach the offsets {ends}", lambda: self._all_hold(ends) or None, limit_s,
            every_s=POLL_SECONDS,
        )  # fmt: skip

    def step(self) -> int:
        """The number of the log's newest batch."""
        return int(self._log_metadata().get("batch", 0))

    @property
    def log(self) -> Path:
        """The topic's log."""
        return self.settings.lake / "logs" / self.topic

    def _log_metadata(self) -> dict[str, Any]:
        return delta.newest_metadata(self.log, lambda metadata: "ends" in metadata) or {}

    def _all_hold(self, ends: dict[int, int]) -> bool:
        newest = self._log_metadata()
        held = newest.get("ends", {}).get("0", {})
        logged = all(int(held.get(str(number), 0)) >= end for number, end in ends.items())
        return logged and self._tables_hold(int(newest.get("batch", 0)))

    def _tables_hold(self, batch: int) -> bool:
        return all(position >= batch for position in self._positions())

    def visible(self) -> int:
        """How many records of the topic every stored table has."""
        batch = min(self._positions(), default=0)
        metadata = delta.newest_metadata(self.log, lambda metadata: metadata.get("batch") == batch) or {}
        return sum(int(end) for end in metadata.get("ends", {}).get("0", {}).values())

    def _positions(self) -> Iterator[int]:
        """The batch up to which each living version has rows, by its commits."""
        for path in self.stored():
            metadata = delta.newest_metadata(path, lambda metadata: "position" in metadata) or {}
            yield int(metadata.get("position", {}).get(self.topic, 0))

    def stored(self) -> list[Path]:
        """The tables of the living versions that store rows."""
        lake = self.settings.lake
        living = (version for version in stored_versions(lake) if version.state == "living")
        return [version.path(lake) for version in living if stores_rows(version)]

    def heads(self) -> dict[Path, int]:
        """The newest commit of each of these tables."""
        return {path: delta.newest_version(path) for path in self.stored()}

    def steps(self, since: Mapping[Path, int]) -> Steps:
        """Those of these tables behind these commits."""
        in_memory = by_spark = 0
        for path, head in since.items():
            for version in range(head + 1, delta.newest_version(path) + 1):
                info = next(one["commitInfo"] for one in _commit(path, version) if "commitInfo" in one)
                if json.loads(info.get("userMetadata") or "{}").get("kind") == "step":
                    in_memory += info["engineInfo"] == delta.ENGINE
                    by_spark += info["engineInfo"] != delta.ENGINE
        return Steps(in_memory=in_memory, by_spark=by_spark)

    def release(self, definitions: Mapping[str, Any], **more: Any) -> None:
        """Plan these definitions, build what changes and have it go live."""
        plan = {"plan": self.job("plan", {"definitions": definitions, **more})["id"]}
        self.job("build", plan)
        self.job("promote", {**plan, "approved_by": "bench"})

    def job(self, kind: str, params: dict[str, object]) -> dict[str, object]:
        """Have the lake server do a job; its result once it has succeeded."""
        done = self.client.follow(self.client.submit(kind, params).id)
        if done.state != "succeeded":
            raise BenchmarkError(f"the job {kind} {params} {done.state}: {done.error}")
        return dict(done.result or {})


def _commit(table: Path, version: int) -> list[dict[str, Any]]:
    found = delta.actions(table / delta.LOG_FOLDER, version)
    if found is None:
        raise BenchmarkError(f"commit {version} of {table} was cleaned up before it was read")
    return found
