"""What a contract promises of time, and who owns it, in the standard's words.

Of a table, `slaProperties` with `property: latency` is how long after its record a row may come; of a topic,
`property: frequency` is how long it may have no record, `property: retention` how long its records are kept
in the lake (`Contract.retention`). Owners are mail addresses in `support` and `team`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from twinlake.base.errors import ContractError
from twinlake.config.alarms import ADDRESS

LATENCY, FREQUENCY, RETENTION = "latency", "frequency", "retention"
_SECONDS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3_600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("y", "yr", "year", "years"), 365 * 86_400),
}
_MAILTO = "mailto:"


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What ends in `_s` is seconds; None where the contract says nothing."""

    latency_s: float | None = None
    frequency_s: float | None = None
    retention_s: float | None = None
    team: str = ""
    owners: tuple[str, ...] = ()
    """Mail addresses."""


NOTHING = Promise()


def read_promise(document: dict[str, Any], file: str | Path) -> Promise:
    """From a contract's document, whose form the standard's schema has passed; ContractError for what is no
    time. A value that is left empty promises nothing."""
    said: dict[str, float] = {}
    for number, one in enumerate(document.get("slaProperties") or ()):
        name, value = one.get("property"), one.get("value")
        if name in (LATENCY, FREQUENCY, RETENTION) and value not in (None, ""):
            at = f"slaProperties[{number}]"
            if name in said:
                raise ContractError(file, at, f"{name} is said twice", "leave one of them out")
            said[name] = _seconds(one, file, at)
    team = document.get("team") or {}
    return Promise(
        latency_s=said.get(LATENCY), frequency_s=said.get(FREQUENCY),
        retention_s=said.get(RETENTION),
        team=str(team.get("name") or "") if isinstance(team, dict) else "",
        owners=tuple(dict.fromkeys(_owners(document))),
    )  # fmt: skip


def _seconds(one: dict[str, Any], file: str | Path, at: str) -> float:
    unit = str(one.get("unit") or "")
    if unit not in _SECONDS:
        known = "seconds, minutes, hours, days or years"
        raise ContractError(file, f"{at}.unit", f"it is {unit!r}, not {known}", f"write {known}")
    try:
        value = Decimal(str(one["value"]))
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or value <= 0:
        raise ContractError(file, f"{at}.value", f"it is {one['value']!r}, not a number above 0")
    return float(value) * _SECONDS[unit]


def _owners(document: dict[str, Any]) -> Iterator[str]:
    for channel in document.get("support") or ():
        url = str(channel.get("url") or "")
        address = url[len(_MAILTO) :].partition("?")[0]
        if url.lower().startswith(_MAILTO) and re.fullmatch(ADDRESS, address):
            yield address
    team = document.get("team") or ()
    for member in (team.get("members") or ()) if isinstance(team, dict) else team:
        user = str(member.get("username") or "")
        if re.fullmatch(ADDRESS, user) and not member.get("dateOut"):
            yield user
