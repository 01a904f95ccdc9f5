"""What the gallery's tables of users must show."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from tests.oracle.gallery.records import Record, Rows


def tables(valid: dict[str, list[Record]], watermarks: dict[str, datetime]) -> dict[str, Rows]:
    seen, bought = _by_user(valid["check_ins"]), _by_user(valid["purchases"])
    now = {
        user: max(held, key=lambda one: (one["seen_at"], one["partition"], one["offset"]))
        for user, held in seen.items()
    }
    sales = {
        user: {"sales": sum(one["amount"] for one in held), "purchases": len(held)}
        for user, held in bought.items()
    }
    regions: dict[str | None, list[str]] = defaultdict(list)
    for user in sales:
        regions[now[user]["location"] if user in now else None].append(user)
    return {
        "user_location": {
            (user,): {"location": one["location"], "seen_at": one["seen_at"]} for user, one in now.items()
        },
        "user_places": {
            (user,): {"places": len({one["location"] for one in held} - {None}), "check_ins": len(held)}
            for user, held in seen.items()
        },
        "user_sales": {(user,): row for user, row in sales.items()},
        "region_sales": {
            (region,): {
                "sales": sum(sales[user]["sales"] for user in users),
                "purchases": sum(sales[user]["purchases"] for user in users),
                "buyers": len(users),
            }
            for region, users in regions.items()
        },
    }


def _by_user(records: list[Record]) -> dict[str, list[Record]]:
    found = defaultdict(list)
    for record in records:
        found[record["user"]].append(record)
    return found
