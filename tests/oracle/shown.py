"""What a reader is shown: the `serve` views, asked through the SQL server's HTTP door."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Protocol

import httpx

from tests.oracle.tables import BLOCK, Digest

MANY = 1_000_000
ANSWER_SECONDS = 300.0


class Door(Protocol):
    """Anything that answers one SELECT with a list of row objects."""

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """All rows of the answer, in no particular order."""


class SqlDoor:
    """The SQL server's query endpoint."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._client = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"X-Twinlake-Query": "1"},
            timeout=ANSWER_SECONDS,
            trust_env=False,  # a proxy of the environment reaches nothing on this machine
            auth=(user, password),
        )

    def rows(self, sql: str) -> list[dict[str, Any]]:
        answer = self._client.post("/query", json={"sql": sql, "limit": MANY})
        if answer.is_error:
            raise RuntimeError(f"the SQL server answered {answer.status_code}: {answer.text[:500]}")
        found = answer.json()
        if found["truncated"]:
            raise RuntimeError(f"the answer has more than {MANY:,} rows: {sql}")
        rows: list[dict[str, Any]] = found["rows"]
        return rows


def orders_digests(door: Door) -> dict[tuple[int, int, int], Digest]:
    """The same digests as the oracle's own, computed by the SQL server row by row."""
    text = (
        "concat_ws('\\u0001', event_id, cast(order_id AS string), customer, region, status, "
        "cast(amount AS string), cast(unix_millis(ordered_at) AS string), cast(_epoch AS string), "
        "cast(_partition AS string), cast(_offset AS string), cast(unix_millis(_timestamp) AS string))"
    )
    rows = door.rows(
        f"SELECT _epoch, _partition, _offset div {BLOCK} AS block, count(*) AS n, "
        "cast(sum(cast(conv(substring(h, 1, 15), 16, 10) AS decimal(20, 0))) AS string) AS first, "
        "cast(sum(cast(conv(substring(h, 17, 15), 16, 10) AS decimal(20, 0))) AS string) AS second "
        f"FROM (SELECT _epoch, _partition, _offset, md5({text}) AS h FROM serve.orders) AS hashed "
        f"GROUP BY _epoch, _partition, _offset div {BLOCK}"
    )
    return {
        (row["_epoch"], row["_partition"], row["block"]): (row["n"], int(row["first"]), int(row["second"]))
        for row in rows
    }


def sales_per_region(door: Door) -> dict[tuple[str, int], tuple[Any, ...]]:
    rows = door.rows(
        "SELECT region, unix_millis(window_start) AS window, unix_millis(window_end) AS closes, "
        "cast(sales AS string) AS sales, orders, cast(average AS string) AS average, "
        "cast(smallest AS string) AS smallest, cast(largest AS string) AS largest, customers, `final` "
        "FROM serve.sales_per_region"
    )
    return distinct(
        ((row["region"], row["window"]), (
            row["closes"], _decimal(row["sales"]), row["orders"], _decimal(row["average"]),
            _decimal(row["smallest"]), _decimal(row["largest"]), row["customers"], row["final"],
        ))
        for row in rows
    )  # fmt: skip


def latest_order(door: Door) -> dict[str, tuple[Any, ...]]:
    rows = door.rows(
        "SELECT customer, order_id, region, status, cast(amount AS string) AS amount, "
        "unix_millis(ordered_at) AS ordered_at FROM serve.latest_order"
    )
    return distinct(
        (row["customer"], (
            row["order_id"], row["region"], row["status"], _decimal(row["amount"]), row["ordered_at"],
        ))
        for row in rows
    )  # fmt: skip


def quarantine(door: Door) -> dict[tuple[int, int, int], tuple[Any, ...]]:
    rows = door.rows(
        "SELECT epoch, partition, offset, unix_millis(timestamp) AS timestamp, md5(key) AS key, "
        "md5(value) AS value, verdict, concat_ws(',', sort_array(reasons)) AS reasons "
        "FROM serve.orders_quarantine"
    )
    return distinct(
        ((row["epoch"], row["partition"], row["offset"]), (
            row["timestamp"], row["key"], row["value"], row["verdict"],
            tuple(row["reasons"].split(",")) if row["reasons"] else (),
        ))
        for row in rows
    )  # fmt: skip


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def distinct(pairs: Any) -> dict[Any, tuple[Any, ...]]:
    """A dict of the pairs; a key shown twice is kept as a difference of its own."""
    found: dict[Any, tuple[Any, ...]] = {}
    for key, values in pairs:
        if key in found:
            values = ("shown more than once", found[key], values)
        found[key] = values
    return found
