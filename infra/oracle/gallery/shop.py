"""What the gallery's tables of a shop must show: what its databases would, were they asked."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from infra.oracle.gallery.records import Record, Rows


def tables(valid: dict[str, list[Record]], watermarks: dict[str, datetime]) -> dict[str, Rows]:
    customers, orders = _table(valid["shop_customers"]), _table(valid["shop_orders"])
    bought: dict[int, list[Decimal]] = {number: [] for number in customers}
    for order in orders.values():
        bought.get(order["customer_id"], []).append(order["amount"])
    return {
        "customers_now": {(number,): _but_id(row) for number, row in customers.items()},
        "orders_now": {(number,): _but_id(row) for number, row in orders.items()},
        "customers_with_orders": {
            (number,): {
                **_but_id(row),
                "orders": len(bought[number]),
                "amount": sum(bought[number], Decimal(0)),
            }
            for number, row in customers.items()
        },
    }


def _but_id(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "id"}


def _table(changes: list[Record]) -> dict[int, dict[str, Any]]:
    """The rows: of each the newest change, but for those that a later whole snapshot would have told."""
    newest: dict[int, Record] = {}
    snapshots: dict[Any, list[Record]] = {}
    for change in sorted(changes, key=lambda one: (one["partition"], one["offset"])):
        newest[(change["after"] or change["before"])["id"]] = change
        source = change["source"]
        if source["snapshot"] in ("first", "true", "last"):
            place = source.get("lsn") or (source["file"], source["pos"])
            snapshots.setdefault(place, []).append(change)
    began = [
        min(told, key=_place)
        for told in snapshots.values()
        if any(one["source"]["snapshot"] == "last" for one in told)
    ]
    start = max(began, key=_place, default=None)
    return {
        number: change["after"]
        for number, change in newest.items()
        if change["op"] != "d" and not (start and _is_before(change, start))
    }


def _place(record: Record) -> Any:
    return record["timestamp"], record["partition"], record["offset"]


def _is_before(change: Record, start: Record) -> bool:
    """Partitions have only the broker's clock in common."""
    if change["partition"] == start["partition"]:
        return bool(change["offset"] < start["offset"])
    return bool(change["timestamp"] < start["timestamp"])
