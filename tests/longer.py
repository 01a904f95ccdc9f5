"""Cases of which every run takes some, and `make faults` the others: all of them together take long."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], taken: int = 1) -> list[Any]:
    """The first `taken` cases as they are, the others marked `faults`."""
    first = list(cases)
    rest = [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.faults)
        for case in first[taken:]
    ]
    return [*first[:taken], *rest]
