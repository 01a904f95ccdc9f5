"""The one Spark session of the test run, the markers that folders set, the seed of all that is drawn."""

from __future__ import annotations

import logging
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests import seconds, shards, workers
from tests.project import OURS
from twinlake.base import service_log
from twinlake.config.settings import Settings
from twinlake.config.settings_file import overrides

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTS = Path(__file__).parent
USES_SPARK = ("batch", "difference", "kinds", "lake", "laws", "releases", "speed")
USES_SERVICES = ("chaos", "cluster", "faults", "kill", "reading", "store", "tour", "week", "wheel")
LONG = ("chaos", "faults", "store", "tour", "week", "wheel")
"""Whole folders that `make faults` runs, and `make test` does not; of others it runs what is marked so."""

THROUGH_ALL = (
    "tests/ingest/test_through_all.py::"
    "test_records_of_a_topic_are_in_its_log_and_the_valid_ones_in_the_view_of_a_table"
)
"""A real broker, a log, a table, its view and a lake server, in the seconds of `make quick`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, help="draw the histories, records and kill point of an earlier run")
    parser.addoption("--shard", choices=[*shards.SHARDS], help="run one shard of what takes long")


def pytest_configure(config: pytest.Config) -> None:
    """Every run draws other histories, and can be repeated with the seed that it prints."""
    for name in overrides(os.environ):  # no test comes near anything of somebody else's
        del os.environ[name]
    # as on most machines: Python keeps compiled files (__pycache__) and uses them again
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if config.option.shard:  # the shard decides, not the selection of an everyday run
        config.option.markexpr = ""
    if workers.is_worker(config):
        config.option.seed = config.workerinput["seed"]  # type: ignore[attr-defined]
    if config.option.seed is None:
        config.option.seed = random.SystemRandom().randrange(2**32)
    config.option.hypothesis_seed = config.option.hypothesis_seed or str(config.option.seed)
    hypothesis.settings.register_profile(
        "twinlake", deadline=None
    )  # how long it takes says how busy the host is
    hypothesis.settings.load_profile("twinlake")
    for name in service_log.CHATTY:  # Airflow shows them, the last after pytest has closed its streams
        logging.getLogger(name).setLevel(logging.WARNING)


def pytest_configure_node(node: Any) -> None:
    """Every worker draws what this process would draw."""
    node.workerinput["seed"] = node.config.option.seed


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> workers.ByUnit | None:
    return workers.ByUnit(config, log) if config.option.dist == "load" else None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before anything can hang or be killed; pytest's own header is not shown by a quiet run."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal:
        terminal.write_line(f"repeat what this run draws with --seed={session.config.option.seed}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make quick` does not read folders of which it would run nothing."""
    slow = {*USES_SPARK, *USES_SERVICES, *LONG}
    folder = collection_path.parent == TESTS and collection_path.name in slow
    return True if folder and config.option.markexpr == "quick" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The folder sets the marker; asking for the session does, too. One named point of a kill is drawn."""
    took = seconds.read()
    for item in items:
        if not item.path.is_relative_to(TESTS):  # the unit test of a table
            continue
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in USES_SPARK or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if folder in USES_SERVICES:
            item.add_marker(pytest.mark.services)
        if folder in LONG:
            item.add_marker(pytest.mark.faults)
        if folder == "cluster":
            item.add_marker(pytest.mark.cluster)
        if _is_quick(item, took):
            item.add_marker(pytest.mark.quick)
    points = [item for item in items if item.path.parts[-2:] == ("kill", "test_points.py")]
    kills = [item for item in points if item.get_closest_marker("faults")]
    if kills:
        random.Random(config.option.seed).choice(kills).add_marker(pytest.mark.drawn)
    shards.choose(config, items)
    if workers.is_worker(config):
        first = workers.order([item.nodeid for item in items], took)
        items.sort(key=lambda item: first(item.nodeid))


def _is_quick(item: pytest.Item, took: dict[str, float]) -> bool:
    """What needs neither Spark nor services and is not listed in seconds.txt; and the way through all."""
    slow = any(item.get_closest_marker(name) for name in ("spark", "services", "faults", "cluster"))
    return item.nodeid == THROUGH_ALL or not (slow or item.nodeid in took)


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """What this run's random choices begin with."""
    found: int = pytestconfig.option.seed
    return found


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Writes down what a test measured: in its output, and in pytest's report, from which `make proof` keeps
    it."""

    def told(what: str, value: str) -> None:
        request.node.user_properties.append((what, value))
        print(f"{what}: {value}")

    return told


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Folders of this test run only; the project is the real one."""
    return Settings(home=tmp_path_factory.mktemp("home"), in_project=OURS)


@pytest.fixture(scope="session")
def spark(settings: Settings) -> Iterator[SparkSession]:
    """The session that production runs with, started once, on two cores."""
    from twinlake.spark.session import session

    found = session(settings, name="twinlake-tests", memory="2g", cores=2)
    yield found
    found.stop()


@pytest.fixture(scope="module", autouse=True)
def _forgotten_tables() -> Iterator[None]:
    """Delta keeps plans of every table for an hour: those of a run's hundreds filled the JVM's heap."""
    yield
    pyspark = sys.modules.get("pyspark")
    if pyspark and (context := pyspark.SparkContext._active_spark_context):
        context._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


@pytest.fixture
def in_zone(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Moves this process and its JVM to another time zone, for one test."""
    jvm: Any = spark._jvm
    zones = jvm.java.util.TimeZone
    before = zones.getDefault()

    def move(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        zones.setDefault(zones.getTimeZone(zone))

    yield move
    monkeypatch.undo()
    time.tzset()
    zones.setDefault(before)
