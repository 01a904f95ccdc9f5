"""Many tables: what each further one costs. Copies of the sales go live beside the project's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from benchmarks.platform import Platform
from jobs.kinds.kind import is_stored
from jobs.tables import TABLES
from jobs.tables.sales_per_region import TABLE as SALES

STORED = 10


@contextmanager
def ten_tables(platform: Platform) -> Iterator[int]:
    """Within it ten tables that store rows are live; so many copies. Afterwards they are retired."""
    own = {table.name: table.to_json() for table in TABLES}
    copies = STORED - sum(map(is_stored, TABLES))
    further = {f"sales_{number}": replace(SALES, name=f"sales_{number}") for number in range(copies)}
    _release(platform, own | {name: table.to_json() for name, table in further.items()})
    yield copies
    _release(platform, own)
    platform.job("retire", {"keep": 1})


def _release(platform: Platform, definitions: Mapping[str, Any]) -> None:
    plan = {"plan": platform.job("plan", {"definitions": definitions})["id"]}
    platform.job("build", plan)
    platform.job("promote", {**plan, "approved_by": "bench"})
