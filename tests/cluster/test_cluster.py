"""The lake server with executors elsewhere: right, whoever is killed, and faster with more of them.

The tests go on from each other: one broker, one cluster, one lake, and an oracle that shares no code with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.broker import free_port
from tests.cluster.spark_cluster import Cluster
from tests.demo.story import CHANGED, changed_definitions
from tests.kill.server import WITNESSED, LakeProcess, lake_process
from tests.kill.views import Views, differences
from tests.project import PROJECT, TABLES
from twinlake.base.job import Job
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services

RECORDS = 150_000
LARGE_BYTES = 900_000
SMALL = 2_000
MANY = 1_000_000
"""For figures: less is over before two workers can share it."""
LONG_S = 600.0


class Platform:
    """A lake server with its cluster, and what its readers are shown."""

    def __init__(self, server: LakeProcess, cluster: Cluster, views: Views) -> None:
        self.server, self.cluster, self.views = server, cluster, views
        self.changed = False

    def start(self) -> None:
        self.server.start(LONG_S)

    def until_caught_up(self) -> None:
        self.server.until(self.server.caught_up, LONG_S)

    def differences(self) -> dict[str, Any]:
        """What the oracle finds once everything that was produced is in the tables."""
        self.until_caught_up()
        return differences(self.server, self.views, without_cancelled=self.changed)

    def spark(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.client.status()["spark"]
        return found

    def until_executors(self, count: int) -> None:
        self.server.until(lambda: bool(self.spark()["executors"] == count), LONG_S)

    def until_error(self, words: str) -> dict[str, Any]:
        """What `twinlake status` says of the executors, once it says this."""

        def said() -> dict[str, Any] | None:
            error: dict[str, Any] | None = self.spark()["error"]
            return error if error and words in f"{error['what']} {error['why']}" else None

        return wait_for(words, said, LONG_S, every_s=1)

    def under_way(self, key: str, worker: int) -> Job:
        """A rebuild, once the worker has begun tasks of it."""
        before, client = self.cluster.tasks(worker), self.server.client
        job = client.submit("rebuild", {"table": CHANGED}, key)

        def computing() -> bool | None:
            assert not client.job(job.id).ended, "it has ended before anything could be killed"
            return True if self.cluster.tasks(worker) > before else None

        wait_for("tasks of the rebuild", computing, LONG_S, every_s=0.05)
        return job


@pytest.fixture(scope="module")
def here(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """With records before its first start."""
    folder = tmp_path_factory.mktemp("cluster")
    cluster = Cluster(folder / "spark")
    try:
        cluster.start()
        for number in (1, 2):
            cluster.worker(number)
        with lake_process(folder / "lake") as server:
            (server.home / "twinlake.toml").write_text(WITNESSED + cluster.settings())
            server.produce(RECORDS)
            views = Views(spark, server.lake)
            yield Platform(server, cluster, views)
            views.close()
    finally:
        cluster.stop()


def test_tables_fed_by_executors_equal_what_the_oracle_computes(here: Platform) -> None:
    """The driver takes the first batches, which are small, in memory; executors take long steps."""
    here.start()
    here.until_caught_up()
    here.server.release()

    assert here.differences() == {}
    here.until_executors(2)
    assert here.spark() == {"master": here.cluster.url, "executors": 2, "cores": 2, "error": None}
    for number in (1, 2):
        assert here.cluster.tasks(number), "it has done nothing"


def test_a_batch_that_does_not_fit_into_the_driver_s_memory_is_read_by_executors(here: Platform) -> None:
    """Some large records say how large records are; the many that follow are more than a batch in memory."""
    login = here.server.broker.login.client()
    for many in (20, 600):
        producer = Producer({**login, "compression.type": "zstd"})
        for number in range(many):
            producer.produce("orders", b"%d" % number + b"x" * LARGE_BYTES)
        assert producer.flush(120) == 0
        here.server.produced += many
        here.until_caught_up()

    assert any(here.cluster.said(number, "Kafka version") for number in (1, 2)), "the driver has read Kafka"
    assert here.differences() == {}


def test_every_table_is_rebuilt_and_verified_by_executors(here: Platform) -> None:
    for table in TABLES:
        assert here.server.do("rebuild", table=table.name)["equal"], table.name
        assert here.server.do("verify", table=table.name)["equal"], table.name


def test_a_worker_killed_in_the_middle_of_a_rebuild_doubles_nothing(
    here: Platform, figure: Callable[[str, str], None]
) -> None:
    """The rebuild goes on with what is left, or fails with one error and is asked for again."""
    job = here.under_way("worker", worker=2)

    here.cluster.workers[2].kill()

    ended = here.server.client.follow(job.id)
    figure("the rebuild whose worker was killed", f"{ended.state} {ended.error or ''}".strip())
    result = (
        ended.result if ended.state == "succeeded" else here.server.do("rebuild", "worker", table=CHANGED)
    )
    assert result and result["equal"]
    here.until_executors(1)
    here.cluster.worker(2)
    here.until_executors(2)
    assert here.differences() == {}


def test_a_driver_killed_in_the_middle_of_a_rebuild_loses_nothing(here: Platform) -> None:
    job = here.under_way("driver", worker=1)
    here.server.produce(SMALL)

    here.server.kill()

    here.start()
    assert here.server.client.job(job.id).state == "interrupted"
    assert here.server.do("rebuild", "driver", table=CHANGED)["equal"]
    here.until_executors(2)
    assert here.differences() == {}


def test_a_release_is_planned_built_and_promoted(here: Platform) -> None:
    plan = here.server.do("plan", definitions=changed_definitions())["id"]
    here.server.do("build", plan=plan)
    before = here.server.client.status()["release"]["number"]

    here.server.do("promote", plan=plan, approved_by="test")

    here.changed = True
    assert here.server.client.status()["release"]["number"] == before + 1
    assert here.differences() == {}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can hide a folder from a process")
@pytest.mark.parametrize(
    ("copied", "why"), [(False, "they have no lake at"), (True, "they have a copy of the lake at")]
)
def test_a_worker_with_another_folder_at_the_lake_s_place_gets_no_task(
    here: Platform, copied: bool, why: str
) -> None:
    """It comes after others; what it wrote would be committed, and no reader would find it."""
    worker = here.cluster.worker(3, hidden=here.server.lake, copied=copied)
    error = here.until_error(why)

    assert "do not run the lake server's programs on its lake" in error["what"]
    assert here.server.do("rebuild", table=CHANGED)["equal"]
    assert here.cluster.tasks(3) == 0
    worker.kill()
    here.until_executors(2)
    assert here.differences() == {}
    assert not [*here.server.lake.glob(".executor-*")]


def test_small_batches_go_on_without_executors_and_status_tells_of_them(here: Platform) -> None:
    for number in (1, 2):
        here.cluster.workers[number].kill()
    here.until_executors(0)

    here.server.produce(SMALL)
    here.until_caught_up()
    error = here.until_error("no executor of spark://")
    waiting = here.server.client.submit("rebuild", {"table": CHANGED})

    assert "start workers" in error["remedy"]
    assert not here.server.client.job(waiting.id, wait_s=2).ended
    for number in (1, 2):
        here.cluster.worker(number)
    assert here.server.client.follow(waiting.id).succeeded()["equal"]
    here.until_executors(2)
    assert "no executor" not in str(here.spark()["error"])
    assert here.differences() == {}


def test_executors_run_no_python_and_no_secret_is_told(here: Platform) -> None:
    for number in (1, 2):
        assert here.cluster.said(number, r"Python(Runner|WorkerFactory)") == []
    secret = here.cluster.secret.read_text().strip()
    told = [here.server.home / "lake.log", *here.cluster.folder.rglob("stderr")]
    assert not [file for file in told if secret in file.read_text(errors="replace")]
    jvm = here.server._jvm()
    assert secret not in " ".join([*jvm.cmdline(), *jvm.environ().values()])


def test_two_workers_against_one(here: Platform, figure: Callable[[str, str], None]) -> None:
    """Told, not asserted: on a machine with two cores everything else runs beside them."""
    here.server.produce(MANY)
    here.until_caught_up()

    def seconds() -> float:
        began = time.monotonic()
        assert here.server.do("rebuild", table=CHANGED)["equal"]
        return time.monotonic() - began

    def best(of: Callable[[], float]) -> float:
        of()  # warm
        return min(of() for _ in range(3))

    two = best(seconds)
    here.cluster.workers[2].kill()
    here.until_executors(1)
    one = best(seconds)

    figure(
        "a rebuild by one worker and by two",
        f"{here.server.produced:,} records on {os.cpu_count()} cores, {one:.1f} s and {two:.1f} s",
    )


def test_executors_with_other_jars_are_refused_in_words(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "spark")
    try:
        cluster.start().worker(1)
        said = lake_server(tmp_path / "home", cluster.settings(**{"spark.executor.extraClassPath": "/none"}))
    finally:
        cluster.stop()

    assert said.returncode == 2, said.stderr[-3000:]
    assert f"executors of {cluster.url} do not run the lake server's programs on its lake" in said.stderr
    assert "spark.executor.extraClassPath" in said.stderr and "Traceback" not in said.stderr


def test_a_master_that_is_away_is_told_before_anything_begins(tmp_path: Path) -> None:
    said = lake_server(tmp_path, f'[spark]\nmaster = "spark://127.0.0.1:{free_port()}"\n')

    assert said.returncode == 3, said.stderr[-3000:]
    assert "no Spark master answers at spark://127.0.0.1:" in said.stderr
    assert "Using Spark's default log4j profile" not in said.stderr, "it has begun"


def lake_server(home: Path, settings: str) -> subprocess.CompletedProcess[str]:
    """A lake server that ends by itself."""
    (home / "lake").mkdir(parents=True)
    (home / "run").mkdir()
    (home / "twinlake.toml").write_text(settings)
    Services(api_token="token", lake=str(home / "lake")).save(home / "services.json")
    command = [sys.executable, "-m", "twinlake.server", "--home", str(home), "--port", str(free_port())]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONG_S, cwd=PROJECT)
