"""How live tables stand is a table itself, for a dashboard of any tool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.reading.conftest import Released, SqlServer
from tests.reading.test_rights import Person, rita
from twinlake.base.errors import StalledVersionError
from twinlake.base.times import utc_now
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog.certificates import Certificate
from twinlake.lake.catalog.release_log import live
from twinlake.lake.catalog.stalled import Publisher, TableState, published, table_states
from twinlake.lake.catalog.version import Health
from twinlake.reading.reports import WITHHELD

__all__ = ["rita"]  # a fixture

WATERMARK = 1_700_012_000_000_000
STALLED = StalledVersionError("the version is stalled", "its logic fails", "correct it").to_json()


class Known:
    """Stands where certificates are kept: of one version there is one."""

    def __init__(self, made: Certificate) -> None:
        self.made = made

    def newest(self, table: str, version: str) -> Certificate | None:
        return self.made if (table, version) == (self.made.table, self.made.version) else None


def certificate(table: str, version: str) -> Certificate:
    return Certificate(
        id="c1", job="j1", kind="verify", table=table, version=version, fingerprint="f",
        position={"orders": 1}, delta_version=1, step=1, through_segment=None,
        windows=[{"from": None, "to": None}], rows_compared=3, differing=0, equal=True,
        created_at="2026-01-31T12:00:00Z",
    )  # fmt: skip


def test_any_tool_can_select_how_tables_stand(sql: SqlServer, released: Released, rita: Person) -> None:
    rita.may(masks={"personal": "hash"})
    release = live(released.lake)
    assert release is not None
    tables = release.tables
    health = [
        Health(table="latest_order", version=tables["latest_order"], position={"orders": 1},
               watermark=WATERMARK, stalled=True, error=STALLED),
        Health(table="sales_per_region", version=tables["sales_per_region"], position={"orders": 1},
               watermark=WATERMARK),
        Health(table="sales_per_region", version="of no release", position={"orders": 1}),
    ]  # fmt: skip
    known: Any = Known(certificate("sales_per_region", tables["sales_per_region"]))
    publisher = Publisher(
        released.lake, lambda: health, utc_now, lambda: table_states(release, health, known)
    )
    publisher.start()
    asked = "SELECT * FROM information_schema.table_status ORDER BY table_name"
    try:
        latest, sales = wait_for(
            "the report", lambda: found if len(found := sql.rows(asked)) == 2 else None, 30
        )
        (told,) = rita.asks("SELECT customer FROM latest_order LIMIT 1").json()["stalled"]
    finally:
        publisher.stop()

    assert (told["table"], told["why"]) == ("latest_order", WITHHELD)
    assert [one["stalled_because"] for one in rita.rows(asked)] == [WITHHELD, None]
    assert sales | {"reported_at": None} == {
        "table_schema": "serve", "table_name": "sales_per_region", "version": tables["sales_per_region"],
        "release": release.number, "data_time": "2023-11-15T01:33:20Z", "position": '{"orders": 1}',
        "is_stalled": False, "stalled_because": None, "is_certified_equal": True,
        "certified_at": "2026-01-31T12:00:00Z", "certificate_covers": "all of history", "reported_at": None,
    }  # fmt: skip
    assert (latest["is_stalled"], latest["stalled_because"]) == (
        True,
        "the version is stalled: its logic fails",
    )
    assert latest["is_certified_equal"] is None and latest["certified_at"] is None
    age = "SELECT max(timestampdiff(SECOND, reported_at, current_timestamp())) AS s "
    assert 0 <= sql.rows(f"{age} FROM information_schema.table_status")[0]["s"] < 60
    assert sql.rows(
        "SELECT t.table_name AS name FROM information_schema.tables t JOIN information_schema.table_status s "
        "USING (table_schema, table_name) WHERE s.is_stalled"
    ) == [{"name": "latest_order"}]


def test_a_report_of_before_has_no_states(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"number": 1, "at": "2026-01-31T12:00:00Z", "stalled": []}')
    before = published(tmp_path)
    assert before is not None and before.tables == ()
    state = TableState(table="t", version="v", release=1, position={"orders": 1}, data_time=None)
    publisher = Publisher(tmp_path, list, utc_now, lambda: [state])
    publisher.start()
    publisher.stop()

    after = published(tmp_path)

    assert after is not None and after.tables == (state,) and replace(state, release=2) not in after.tables
