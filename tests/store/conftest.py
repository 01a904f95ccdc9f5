"""One HDFS for the tests of lakes in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.store.hdfs import Hdfs
from twinlake.base.location import Remote


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    folder: Path = tmp_path_factory.mktemp("hdfs")
    started = Hdfs(folder)
    try:
        yield started.start()
    finally:
        started.stop()


@pytest.fixture
def lake(hdfs: Hdfs) -> Remote:
    """A place where nothing is."""
    return hdfs.lake(uuid4().hex)
