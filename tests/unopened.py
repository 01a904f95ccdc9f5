"""A lake server that has not opened its lake: what it says of it costs no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tests.project import OURS
from twinlake.base.times import utc_now
from twinlake.config.settings import Settings
from twinlake.kinds.derived import Derived
from twinlake.kinds.kind import Kind
from twinlake.kinds.windows import ALL
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.certificates import Certificate
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.server.lake_server import LakeServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = "2026-01-31T12:00:00Z"


def no_session(settings: Settings) -> SparkSession:
    raise AssertionError("nobody may need Spark here")


def unopened(home: Path) -> LakeServer:
    return LakeServer(Settings(home=home, in_project=OURS), utc_now, no_session)


def make_live(lake: Path, tables: Mapping[str, str]) -> None:
    """A first release of these versions."""
    formats.acquire(lake)
    release_log.commit(
        lake, Release(number=1, kind="promote", tables=dict(tables), created_at=AT, approved_by="me")
    )


BIG = Derived(
    name="big", reads=("sales_per_region",), columns=("region", "total"), keys=("region",), by=("region",),
    sql="SELECT region, max(sales) AS total FROM sales_per_region WHERE orders > 1 GROUP BY region",
)  # fmt: skip


def version(table: Kind, build: int, **reads: str) -> Version:
    """Of a table over orders, and over these versions of tables."""
    return Version(
        table=table.name, fingerprint=f"{build}" * 12, build=build, definition=table.to_json(),
        topics=("orders",), contracts={"orders": "1.0.0"}, created_at=AT, reads=reads,
    )  # fmt: skip


def certificate(table: str, version: str, equal: bool = True) -> Certificate:
    """Over all of history."""
    return Certificate(
        id=f"{table}-{version}-{equal}", job="j", kind="verify", table=table, version=version,
        fingerprint="f", position={"orders": 7}, delta_version=3, step=4, through_segment=1,
        windows=ALL.to_json(), rows_compared=12_345, differing=0 if equal else 1, equal=equal,
        differences=[] if equal else [{"why": "changed"}], created_at=AT,
    )  # fmt: skip
