"""Plots: which lines of the history each page shows, as JSON for its script, and its last values as a table.

A page asks for them once a minute; however many do, the files are read once a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from twinlake.base.errors import UsageError
from twinlake.console.console import Console
from twinlake.console.sessions import Session
from twinlake.console.thinning import GAP_S, Line, Lines, Thinned

MOST_LINES = 8
"""Of one picture: so many colours look different."""
GB = 1e9
SPANS = {1: "the last day", 7: "the last seven days"}
VERDICTS = {"valid": "valid", "invalid": "invalid", "too_late": "too late", "late": "valid, but late"}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A line with its name; `is_bound` where it is what is allowed."""

    name: str
    values: Line
    is_bound: bool = False

    @property
    def known(self) -> list[float]:
        return [one for one in self.values if one is not None]


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One picture; `others` counts the lines that there was no room for, which are lower."""

    title: str
    curves: list[Curve]
    others: int = 0


def of_home(seen: Thinned, name: str) -> list[Plot]:
    disk = [None if one is None else round(one / GB, 2) for one in seen.disk_free]
    return [
        _highest("Records a second, by topic", seen.topics, "records"),
        _highest("Lag of topics, in records", seen.topics, "lag_records"),
        _highest("Freshness: how old readers see a table, in seconds", seen.tables, "freshness_seconds"),
        Plot(title="Free on the disk, in GB", curves=[Curve(name="free", values=disk)]),
    ]  # fmt: skip


def of_topic(seen: Thinned, name: str) -> list[Plot]:
    topic = seen.topics.get(name, {})
    return [
        Plot(title="Records a second, by verdict", curves=_curves(topic, VERDICTS)),
        Plot(title="Lag, in records", curves=_curves(topic, {"lag_records": "lag"})),
        Plot(title="Lag, in seconds", curves=_curves(topic, {"lag_seconds": "lag"})),
    ]


def of_table(seen: Thinned, name: str) -> list[Plot]:
    table = seen.tables.get(name, {})
    curves = _curves(table, {"freshness_seconds": "freshness", "allowed_seconds": "allowed"})
    return [Plot(title="Freshness: how old readers see it, in seconds", curves=curves)]


PAGES: Mapping[str, Callable[[Thinned, str], list[Plot]]] = {
    "home": of_home, "topic": of_topic, "table": of_table,
}  # fmt: skip


def _curves(figures: Mapping[str, Line], names: Mapping[str, str]) -> list[Curve]:
    return [
        Curve(name=name, values=figures[figure], is_bound=figure == "allowed_seconds")
        for figure, name in names.items()
        if figure in figures
    ]


def _highest(title: str, lines: Lines, figure: str) -> Plot:
    """One line each for those that get highest."""
    found = [Curve(name=name, values=one[figure]) for name, one in lines.items()]
    found.sort(key=lambda one: (-max(one.known, default=-1.0), one.name))
    shown = sorted(found[:MOST_LINES], key=lambda one: one.name)
    return Plot(title=title, curves=shown, others=len(found) - len(shown))


def routes(console: Console) -> list[Route]:
    async def history(request: Request, session: Session) -> Response:
        """`of` is a page, `name` its topic or table, `days` 1 or 7."""
        given = request.query_params
        of, name, days = given.get("of", ""), given.get("name", ""), days_of(request)
        return JSONResponse(await console.asked(lambda: _found(console, of, name, days)))

    return [Route("/part/history", console.signed_in(history, is_part=True), methods=["GET"])]


def days_of(request: Request) -> int:
    """How many days a page is asked to look back."""
    given = request.query_params.get("days", "1")
    if given not in map(str, SPANS):
        raise UsageError("so many days cannot be shown", f"{given[:20]!r} is none of 1 and 7", "choose one")
    return int(given)


def shown(console: Console, request: Request, of: str, name: str = "") -> dict[str, Any]:
    """What a page's template needs for its plots: where they come from, and their last values as a table."""
    days = days_of(request)
    found = _found(console, of, name, days)
    return {
        "address": f"/part/history?{urlencode({'of': of, 'name': name, 'days': days})}", "days": days,
        "spans": SPANS, "note": found["note"],
        "lasts": [
            {"title": plot["title"], "name": one["name"], **_last(one["values"])}
            for plot in found["plots"]
            for one in plot["curves"]
        ],
    }  # fmt: skip


def _found(console: Console, of: str, name: str, days: int) -> dict[str, Any]:
    if of not in PAGES:
        raise UsageError("there are no plots of that", f"{of[:20]!r} is none of {', '.join(PAGES)}")
    seen = console.history[days].seen()
    if seen.value is None:
        why = seen.error.why if seen.error else "that takes long"
        return {"times": [], "plots": [], "note": f"The history cannot be read: {why}"}
    plots = [asdict(one) for one in PAGES[of](seen.value, name)]
    note = f"The history cannot be read: {seen.error.why}" if seen.error else _note(seen.value)
    return {"times": seen.value.times, "plots": plots, "note": note}


def _note(seen: Thinned) -> str:
    """Why what is newest is missing, if it is."""
    if seen.newest is None:
        return "Nothing is known of this time yet: the service alarms writes a point a minute."
    if seen.until - seen.newest <= GAP_S:
        return ""
    since = datetime.fromtimestamp(seen.newest, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Nothing is known since {since}: see whether the service alarms runs."


def _last(values: Line) -> dict[str, float | None]:
    """The newest step may have begun a moment ago, and know nothing yet."""
    known = [one for one in values if one is not None]
    last = next((one for one in values[:-3:-1] if one is not None), None)
    return {"last": last, "highest": max(known, default=None)}
