from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tutorials.reader import Reader


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with Reader(tmp_path) as made:
        yield made
    left = made.processes()
    for process in left:
        process.kill()
    assert left == []
