"""Every answer names the tables it reads that do not keep up with their logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import twinlake
from jobs.errors import StalledVersionError
from jobs.lake.release_log import live
from jobs.lake.stalled import BEHIND_S, Publisher
from jobs.lake.version import Health
from jobs.reading import client
from jobs.settings import Settings
from jobs.waiting import wait_for
from tests.reading.conftest import Released, SqlServer

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
    publisher = Publisher(released.lake)
    publisher.publish(health)
    asked = "SELECT 1 FROM serve.sales_per_region s, serve.latest_order l LIMIT 1"
    yield wait_for("the follower", lambda: client.ask(sql.services, asked)["stalled"] or None, 30)
    publisher.publish([])
    wait_for("the follower", lambda: client.ask(sql.services, asked)["stalled"] == [] or None, 30)


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
    assert twinlake.told(read)["stalled"] == [stopped]
