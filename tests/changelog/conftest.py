"""One real broker for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.broker import Broker
from tests.registry import FakeRegistry


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    found = Broker(tmp_path_factory.mktemp("broker")).start()
    yield found
    found.stop()


@pytest.fixture(scope="session")
def registry() -> Iterator[FakeRegistry]:
    found = FakeRegistry()
    yield found
    found.close()
