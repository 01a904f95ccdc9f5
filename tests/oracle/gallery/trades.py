"""What the gallery's tables of trades must show."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from tests.oracle.gallery.records import Record, Rows

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


def tables(valid: dict[str, list[Record]], watermarks: dict[str, datetime]) -> dict[str, Rows]:
    trades = valid["trades"]
    days = prices_per_day(trades)
    return {
        "prices_per_day": days,
        "top_symbols": top_symbols(days),
        "trades_in_5_seconds": trades_in_5_seconds(trades),
        "last_trades": last_trades(trades),
    }


def prices_per_day(trades: list[Record]) -> Rows:
    groups = defaultdict(list)
    for trade in trades:
        day = trade["traded_at"].replace(hour=0, minute=0, second=0, microsecond=0)
        groups[trade["symbol"], day].append(trade)
    return {
        (symbol, day): {
            "window_end": day + DAY,
            "lowest": min(trade["price"] for trade in group),
            "highest": max(trade["price"] for trade in group),
            "average": _rounded(sum(trade["price"] for trade in group) / Decimal(len(group))),
            "volume": sum(trade["quantity"] for trade in group),
            "trades": len(group),
        }
        for (symbol, day), group in groups.items()
    }


def top_symbols(days: Rows) -> Rows:
    shown: Rows = {}
    for day in {day for _, day in days}:
        volumes = sorted((-row["volume"], symbol) for (symbol, one), row in days.items() if one == day)
        for place, (volume, symbol) in enumerate(volumes[:10], start=1):
            shown[day, symbol] = {"place": place, "volume": -volume}
    return shown


def trades_in_5_seconds(trades: list[Record]) -> Rows:
    windows = defaultdict(list)
    for trade in trades:
        last = trade["traded_at"].replace(microsecond=0)
        for back in range(5):
            windows[last - back * SECOND].append(trade)
    return {
        (start,): {
            "window_end": start + 5 * SECOND,
            "trades": len(group),
            "volume": sum(trade["quantity"] for trade in group),
        }
        for start, group in windows.items()
    }


def last_trades(trades: list[Record]) -> Rows:
    groups = defaultdict(list)
    for trade in trades:
        groups[trade["symbol"]].append(trade)
    shown: Rows = {}
    for symbol, group in groups.items():
        group.sort(key=lambda trade: (trade["traded_at"], trade["partition"], trade["offset"]), reverse=True)
        for place, trade in enumerate(group[:5], start=1):
            shown[symbol, place] = {name: trade[name] for name in ("traded_at", "price", "quantity")}
    return shown


def _rounded(price: Decimal) -> Decimal:
    return price.quantize(Decimal("0.000001"), rounding=ROUND_HALF_UP)
