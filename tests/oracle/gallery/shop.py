"""What the gallery's tables of a shop must show: what its databases would, were they asked."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.oracle.gallery.records import Record, Rows


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
    complete = [
        told for told in snapshots.values() if any(one["source"]["snapshot"] == "last" for one in told)
    ]
    return {
        number: change["after"]
        for number, change in newest.items()
        if change["op"] != "d" and not any(_is_before(change, told) for told in complete)
    }


def _is_before(change: Record, snapshot: list[Record]) -> bool:
    """Partitions have the broker's clock in common, and what their records say of the database's log; a
    change is older than a snapshot only where both say so."""
    beside = [one["offset"] for one in snapshot if one["partition"] == change["partition"]]
    if beside:
        return bool(change["offset"] < min(beside))
    began = min(one["timestamp"] for one in snapshot)
    return bool(change["timestamp"] < began and _place(change) < _place(snapshot[0]))


def _place(record: Record) -> Any:
    source = record["source"]
    return source.get("lsn") or (source["file"], source["pos"], source["row"])
