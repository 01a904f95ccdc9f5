"""Every answer names the tables it reads that do not keep up with their logs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import twinlake
from tests.reading.conftest import Released, SqlServer
from twinlake.base.errors import StalledVersionError
from twinlake.base.times import utc_now
from twinlake.base.waiting import wait_for
from twinlake.cli.app import build_app
from twinlake.config.settings import Settings
from twinlake.lake.catalog.release_log import live
from twinlake.lake.catalog.stalled import BEHIND_S, Publisher, published
from twinlake.lake.catalog.version import Health
from twinlake.reading import client
from twinlake.reading.reports import SILENT_S, Reports

THEN = "position:orders=1"
STALLED = StalledVersionError("the version is stalled", "its logic fails", "correct it")


@pytest.fixture
def named(sql: SqlServer, released: Released) -> Iterator[list[dict[str, Any]]]:
    """`sales_per_region` is stalled and `latest_order` is behind; `orders` keeps up."""
    release = live(released.lake)
    assert release is not None
    healthy = dict(position={"orders": 1}, lag_seconds=0.5)
    health = [
        Health(table="latest_order", version=release.tables["latest_order"], position={"orders": 7},
               lag_seconds=BEHIND_S),
        Health(table="orders", version=release.tables["orders"], **healthy),  # type: ignore[arg-type]
        Health(table="sales_per_region", version=release.tables["sales_per_region"], position={"orders": 1},
               stalled=True, error=STALLED.to_json()),
        Health(table="sales_per_region", version="another", **healthy),  # type: ignore[arg-type]
    ]  # fmt: skip
    publisher = Publisher(released.lake, lambda: health, utc_now)
    publisher.start()
    asked = "SELECT 1 FROM serve.sales_per_region s, serve.latest_order l LIMIT 1"
    yield wait_for("the follower", lambda: client.ask(sql.services, asked)["stalled"] or None, 30)
    health.clear()
    wait_for("the follower", lambda: client.ask(sql.services, asked)["stalled"] == [] or None, 30)
    publisher.stop()


def test_an_answer_names_what_is_stalled_or_behind_of_what_it_reads(
    sql: SqlServer, released: Released, named: list[dict[str, Any]]
) -> None:
    def tables(statement: str) -> list[str]:
        return [one["table"] for one in client.ask(sql.services, statement)["stalled"]]

    release = live(released.lake)
    assert release is not None
    sql.services.save(Settings(home=sql.home).services_file)
    late, stopped = sorted(named, key=lambda one: one["table"])

    assert stopped == {
        "table": "sales_per_region", "version": release.tables["sales_per_region"],
        "why": "the version is stalled: its logic fails", "position": {"orders": 1},
    }  # fmt: skip
    assert (late["position"], late["why"]) == ({"orders": 7}, "records have been waiting for more than 60 s")
    assert tables("SELECT count(*) FROM serve.orders") == []
    assert tables("SHOW VIEWS IN serve") == []
    assert tables(f"SELECT 1 FROM release_{release.number}.SALES_per_region") == ["sales_per_region"]
    assert tables("WITH a AS (SELECT max(region) r FROM serve.sales_per_region) SELECT * FROM a") == [
        "sales_per_region"
    ]
    assert tables("SELECT (SELECT max(order_id) FROM serve.latest_order) FROM serve.orders LIMIT 1") == [
        "latest_order"
    ]
    read = twinlake.read("sales_per_region", home=sql.home)
    assert twinlake.metadata(read)["stalled"] == [stopped]


def test_while_the_lake_server_does_not_report_every_answer_says_so(
    sql: SqlServer, released: Released
) -> None:
    sql.services.save(Settings(home=sql.home).services_file)

    def answers() -> list[dict[str, Any] | None]:
        told: list[dict[str, Any] | None] = [
            client.ask(sql.services, "SELECT count(*) FROM serve.orders")["no_report"],
            client.ask(sql.services, "SELECT 1 FROM serve.latest_order", as_of=THEN)["no_report"],
            twinlake.metadata(twinlake.read("latest_order", columns="order_id", home=sql.home))["no_report"],
            client.ask_why(sql.services, "latest_order", {"customer": "c7"}, THEN)["no_report"],
            sql.status()["no_report"],
        ]
        return told

    def footer() -> str:
        return CliRunner().invoke(build_app(), ["--home", str(sql.home), "query", "SELECT 1"]).output

    publisher = Publisher(released.lake, list, utc_now)
    publisher.start()
    wait_for("a report", lambda: sql.status()["no_report"] is None or None, 60)
    reporting = answers(), footer()
    publisher.stop()
    last = published(released.lake)
    missing = wait_for("its absence", lambda: sql.status()["no_report"], 60)
    silent = answers(), footer()
    again = Publisher(released.lake, list, lambda: datetime(2020, 1, 1, tzinfo=UTC))  # its clock went back
    again.start()
    wait_for("a report", lambda: sql.status()["no_report"] is None or None, 60)
    again.stop()

    assert reporting[0] == [None] * 5 and "has not reported" not in reporting[1]
    assert last is not None and missing["last_report"] == last.at and missing["seconds"] >= SILENT_S
    assert all(one and one["why"].startswith("the lake server has not reported for ") for one in silent[0])
    assert "the lake server has not reported for " in silent[1] and "twinlake status" in silent[1]


def test_how_long_there_is_no_report_is_counted_by_no_clock_that_jumps(tmp_path: Path) -> None:
    here, there = [100.0], [datetime(2026, 1, 31, tzinfo=UTC)]
    reports = Reports(tmp_path, lambda: here[0])
    publisher = Publisher(tmp_path, list, lambda: there[0])

    def after(seconds: float, *, reported: bool) -> int | None:
        here[0] += seconds
        if reported:
            publisher._written_at -= 60
            publisher._publish()
        reports.look()
        missing = reports.missing()
        return missing and missing["seconds"]

    assert [after(SILENT_S - 1, reported=False), after(1, reported=False)] == [None, SILENT_S]
    assert after(5, reported=True) is None
    for year in (2020, 2040):
        there[0] = datetime(year, 1, 31, tzinfo=UTC)
        assert after(SILENT_S + 1, reported=True) is None
    assert after(SILENT_S + 1, reported=False) == SILENT_S + 1
    # another server after it, whose first report has the same number
    publisher = Publisher(tmp_path, list, lambda: there[0].replace(year=2041))
    assert after(1, reported=True) is None
