"""What the gallery's tables of card payments must show."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from statistics import quantiles

from tests.oracle.gallery.records import Record, Rows

HOUR = timedelta(hours=1)


def tables(valid: dict[str, list[Record]], watermarks: dict[str, datetime]) -> dict[str, Rows]:
    hours, amounts = card_hours(valid["card_payments"]), card_amounts(valid["card_payments"])
    suspicious: Rows = {}
    for (card, hour), row in hours.items():
        median = amounts[card,]["median"]
        unusual = float(row["largest"]) > 30 * median
        if row["countries"] >= 3 or unusual:
            shown = {name: row[name] for name in ("merchants", "countries", "largest")}
            suspicious[card, hour] = {**shown, "median": median}
    return {
        "card_hours": hours, "card_amounts": amounts, "suspicious_hours": suspicious,
        "card_pace": card_pace(valid["card_payments"]),
    }  # fmt: skip


def card_pace(payments: list[Record]) -> Rows:
    """Of each payment all others of its card are looked at."""

    def place(payment: Record) -> tuple[datetime, tuple[int, ...]]:
        return payment["paid_at"], (0, payment["partition"], payment["offset"])

    found: Rows = {}
    for payment in payments:
        at = payment["paid_at"]
        before = sorted(
            (one for one in payments if one["card"] == payment["card"] and place(one) < place(payment)),
            key=place,
        )
        hour = [one for one in before if one["paid_at"] >= at - HOUR]
        spent = sum((one["amount"] for one in hour), Decimal(0)) if hour else None
        mean = None if spent is None else (spent / len(hour)).quantize(Decimal("0.000001"), ROUND_HALF_UP)
        found[place(payment)[1]] = {
            **{name: payment[name] for name in ("card", "country", "amount", "paid_at")},
            "payments_in_5_minutes": sum(one["paid_at"] >= at - timedelta(minutes=5) for one in hour),
            "payments_in_1_hour": len(hour),
            "spent_in_1_hour": spent,
            "usual_in_1_hour": mean,
            "countries_in_1_hour": len({one["country"] for one in hour}),
            "last_country": hour[-1]["country"] if hour else None,
        }
    return found


def card_hours(payments: list[Record]) -> Rows:
    groups = defaultdict(list)
    for payment in payments:
        hour = payment["paid_at"].replace(minute=0, second=0, microsecond=0)
        groups[payment["card"], hour].append(payment)
    return {
        (card, hour): {
            "window_end": hour + HOUR,
            "payments": len(group),
            "merchants": len({payment["merchant"] for payment in group} - {None}),
            "countries": len({payment["country"] for payment in group}),
            "largest": max(payment["amount"] for payment in group),
        }
        for (card, hour), group in groups.items()
    }


def card_amounts(payments: list[Record]) -> Rows:
    groups: dict[str, list[Decimal]] = defaultdict(list)
    for payment in payments:
        groups[payment["card"]].append(payment["amount"])
    return {
        (card,): {
            "payments": len(group), "median": _quantile(group, 50), "nearly_all": _quantile(group, 95),
            "sizes": [
                {"low": low, "high": high,
                 "count": sum((low or Decimal("-inf")) <= one < (high or Decimal("inf")) for one in group)}
                for low, high in ((None, 10), (10, 100), (100, 1000), (1000, None))
            ],
        }
        for card, group in groups.items()
    }  # fmt: skip


def _quantile(amounts: list[Decimal], percent: int) -> float:
    """Between the two amounts at both sides of the place, in proportion."""
    if len(amounts) == 1:
        return float(amounts[0])
    return quantiles(map(float, amounts), n=100, method="inclusive")[percent - 1]
