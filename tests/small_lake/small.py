"""The small lakes kept beside this module: one file per on-disk format, each made by the code of its time.

`format_0.tar.xz` holds `lake/`, the `project/` (schemas and contracts) that it was made with, and
`shown.json`: what readers saw in it. `make.py` made it.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.kill.views import Views
from twinlake.lake.catalog import release_log

HERE = Path(__file__).parent
Shown = dict[str, list[Any]]


def unpack(number: int, home: Path) -> Path:
    """A copy of the lake of this format, with its project beside it; the lake's folder."""
    with tarfile.open(HERE / f"format_{number}.tar.xz") as packed:
        packed.extractall(home, filter="data")
    return home / "lake"


@contextmanager
def views_of(spark: SparkSession, lake: Path) -> Iterator[Views]:
    """What readers of the live release are served."""
    views = Views(spark, lake)
    try:
        views.follow()
        yield views
    finally:
        views.close()


def shown(spark: SparkSession, lake: Path) -> Shown:
    """Every view of the live release, sorted; numbers to 12 digits, because the order of sums is free."""
    live = release_log.live(lake)
    assert live
    with views_of(spark, lake) as views:
        return {table: _rows(views, table) for table in sorted(live.tables)}


def _rows(views: Views, table: str) -> list[Any]:
    null = "map('ignoreNullFields', 'false')"
    found = views.rows(f"SELECT to_json(struct(*), {null}) AS row FROM serve.{table}")
    return [json.loads(text, parse_float=_rounded) for text in sorted(one["row"] for one in found)]


def _rounded(number: str) -> float:
    return float(f"{float(number):.12g}")
