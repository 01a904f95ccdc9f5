"""docs/measures.md is made from the code, and every listed measure says what it promises."""

from __future__ import annotations

import inspect

from tests.kinds.test_new_kind import LogSum
from twinlake.kinds.measures.all import MEASURES
from twinlake.reference.measures import text


def test_the_measure_that_is_shown_to_users_is_the_tested_one() -> None:
    assert f"```python\n{inspect.getsource(LogSum)}```" in text()


def test_every_measure_is_in_the_table() -> None:
    rows = [line for line in text().splitlines() if line.startswith("| `")]

    assert [row.split("(")[0].removeprefix("| `") for row in rows] == [
        kind.__name__ for kind in MEASURES.values()
    ]
    assert all(row.count(" | ") == 9 for row in rows)
