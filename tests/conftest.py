"""The one Spark session of the test run, the markers that folders set, the seed of generated data."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTS = Path(__file__).parent
USES_SPARK = ("batch", "kinds", "lake", "laws", "releases", "speed")
USES_SERVICES = ("faults", "kill", "reading")


def pytest_configure(config: pytest.Config) -> None:
    """Every run tries other histories, and can be repeated with the seed that its header shows."""
    if config.getoption("--hypothesis-seed", default=None) is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    return f"histories: repeat this run with --hypothesis-seed={config.getoption('--hypothesis-seed')}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The folder sets the marker; asking for the session does, too."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in USES_SPARK or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if folder in USES_SERVICES:
            item.add_marker(pytest.mark.services)
        if folder == "faults":
            item.add_marker(pytest.mark.faults)


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Folders of this test run only; the project is the real one."""
    return Settings(home=tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def spark(settings: Settings) -> Iterator[SparkSession]:
    """The session that production runs with, started once, on two cores."""
    from jobs.spark import session

    found = session(settings, name="twinlake-tests", memory="2g", cores=2)
    yield found
    found.stop()
