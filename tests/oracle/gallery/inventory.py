"""What the gallery's tables of an inventory must show."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from tests.oracle.gallery.records import Record, Rows

LEAST = 20


def tables(valid: dict[str, list[Record]], watermarks: dict[str, datetime]) -> dict[str, Rows]:
    shipped, sold = _quantities(valid["shipments"]), _quantities(valid["item_sales"])
    rest = {item: shipped[item] - sold[item] for item in shipped.keys() | sold.keys()}
    return {
        "items_shipped": {(item,): {"shipped": count} for item, count in shipped.items()},
        "items_sold": {(item,): {"sold": count} for item, count in sold.items()},
        "stock_on_hand": {
            (item,): {"on_hand": max(left, 0), "back_ordered": max(-left, 0)} for item, left in rest.items()
        },
        "items_to_order": {
            (item,): {"on_hand": max(left, 0), "to_order": LEAST - left}
            for item, left in rest.items()
            if left < LEAST
        },
    }


def _quantities(records: list[Record]) -> Counter[str]:
    found: Counter[str] = Counter()
    for record in records:
        found[record["item"]] += record["quantity"]
    return found
