"""One real broker and one real registry for all tests here, and a stage for each.

A fake registry is for what a real one does not do when it is told to: forget, fall silent, take a schema that
contradicts the one before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.apicurio import Apicurio
from tests.broker import Broker
from tests.ingest.stage import Stage
from tests.ingest.whole_server import WholeServer
from tests.longer import some
from tests.registry import FakeRegistry
from twinlake.ingest import ingest

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    found = Broker(tmp_path_factory.mktemp("broker")).start()
    yield found
    found.stop()


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    found = FakeRegistry()
    yield found
    found.close()


@pytest.fixture(scope="session")
def apicurio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    found = Apicurio(tmp_path_factory.mktemp("registry")).start()
    yield found
    found.stop()


@pytest.fixture(params=some(["small", "large"]))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How batches are taken: in memory by a kept plan, or in two passes by Spark, as large ones are."""
    if request.param == "large":
        monkeypatch.setattr(ingest, "IN_MEMORY_BYTES", 0)
    return str(request.param)


@pytest.fixture
def stage(spark: SparkSession, broker: Broker, apicurio: Apicurio, tmp_path: Path) -> Iterator[Stage]:
    found = Stage(spark, broker, apicurio, tmp_path / "home", f"orders_{next(NUMBERS)}")
    yield found
    found.close()


@pytest.fixture
def faked(spark: SparkSession, broker: Broker, registry: FakeRegistry, tmp_path: Path) -> Iterator[Stage]:
    found = Stage(spark, broker, registry, tmp_path / "home", f"orders_{next(NUMBERS)}")
    yield found
    registry.down = False
    found.close()


@pytest.fixture
def whole(stage: Stage) -> Iterator[WholeServer]:
    """A lake server over the stage's topic, of two partitions."""
    stage.create(partitions=2)
    found = WholeServer(stage)
    yield found
    found.close()
