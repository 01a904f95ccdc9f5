"""A time is the same instant by every way in, whatever zone a session shows it in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.reading.conftest import PASSWORD, SqlServer
from twinlake import read

NEWEST = "SELECT max(ordered_at) AS at, max(unix_micros(ordered_at)) AS micros FROM latest_order"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_jdbc_gives_the_instant_that_http_gives(
    sql: SqlServer, jdbc: Callable[..., Any], analyst_jvm: Any, zone: str
) -> None:
    """The driver takes a time's text for one of its own JVM's zone, so the session is told that zone."""
    (http,) = sql.rows(NEWEST)
    zones = analyst_jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(zone))
    try:
        with closing(jdbc(more=f"?spark.sql.session.timeZone={zone}")) as connection:
            found = connection.createStatement().executeQuery(NEWEST)
            assert found.next()
            instant, micros = found.getTimestamp(1).toInstant().toString(), found.getLong(2)
    finally:
        zones.setDefault(before)

    assert http["at"].endswith("Z") and (instant, micros) == (http["at"], http["micros"])


def test_arrow_and_json_name_their_zone(sql: SqlServer) -> None:
    table = read("latest_order", columns="ordered_at", address=sql.url, user="analyst", password=PASSWORD)

    assert str(table.schema.field("ordered_at").type) == "timestamp[us, tz=UTC]"
    assert all(row["ordered_at"].endswith("Z") for row in sql.rows("SELECT ordered_at FROM latest_order"))
