"""Assess: whether everything is well, from figures and their age; what needs a person comes first, with what
to do. Whatever is not known, or not known since half a minute, is not well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from twinlake.alarms.alarm import Alarm, Condition
from twinlake.alarms.conditions import Disk, full_disk, silent
from twinlake.base.errors import TwinlakeError
from twinlake.config.alarms import Alarms
from twinlake.console.figures import OLD_S, Seen, Services
from twinlake.services.lake_status import NOTHING
from twinlake.services.problems import problems

WELL, WAITS, NEEDS, UNKNOWN = "well", "waits", "needs", "unknown"
BEHIND_S = 60.0
"""A table further behind its topics is not fresh; readers are warned of it from there on, too."""
BOUNDS = Alarms()


@dataclass(frozen=True, kw_only=True)
class Need:
    """One thing that is not well, in words; `remedy` has commands between backticks."""

    title: str
    what: str
    why: str = ""
    remedy: str = ""

    @classmethod
    def of(cls, title: str, error: dict[str, Any]) -> Need:
        said = {name: str(error.get(name, "")) for name in ("what", "why", "remedy")}
        return cls(title=title, **said)

    @classmethod
    def of_condition(cls, one: Condition) -> Need:
        return cls(title=one.title, what=one.what, why=one.why, remedy=one.remedy)


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """`needs` are for a person; what is in `waits` goes on by itself, or stands still because somebody said
    so; of what is in `unknown` there are no figures of now."""

    needs: tuple[Need, ...] = ()
    waits: tuple[Need, ...] = ()
    unknown: tuple[Need, ...] = ()

    @property
    def state(self) -> str:
        states = ((self.unknown, UNKNOWN), (self.needs, NEEDS), (self.waits, WAITS))
        return next((state for found, state in states if found), WELL)

    @property
    def sentence(self) -> str:
        """The first words of Home."""
        if self.unknown and not self.needs:
            return f"It is not known whether all is well: {self.unknown[0].what}."
        if self.needs:
            besides = f" Besides, {self.unknown[0].what}." if self.unknown else ""
            if len(self.needs) > 1:
                return f"{len(self.needs)} things need a person.{besides}"
            return f"{self.needs[0].title} needs a person: {self.needs[0].what}.{besides}"
        if len(self.waits) > 1:
            return f"Nothing needs a person; {len(self.waits)} things wait."
        if self.waits:
            return f"Nothing needs a person; {self.waits[0].title} {self.waits[0].what}."
        return "All is well."


def assess(
    services: Seen[Services], lake: Seen[dict[str, Any]], alarms: Sequence[Alarm] = (),
    bounds: Alarms = BOUNDS,
) -> Assessment:  # fmt: skip
    """What these figures say, of now; what is silenced of the alarms needs nobody."""
    known = services.value
    parts = known.parts if known and not services.is_old else []
    status = {**NOTHING, **(lake.value or {})} if not lake.is_old else {**NOTHING}
    supervisor = known.supervisor if known and not services.is_old else None
    needs = [Need.of(one.title, one.error) for one in problems(parts, status, supervisor)]
    titles = {one.title for one in needs}
    found = [silent(part) for part in parts if not part["answers"] and part["part"] not in titles]
    if known and not services.is_old:
        found += full_disk(Disk(free=known.disk_free, total=known.disk_total), bounds)
    needs += [*map(Need.of_condition, found), *_unreadable(status)]
    said = {(one.title, one.what) for one in needs}
    needs += [Need.of_condition(one) for one in alarms if (one.title, one.what) not in said]
    quiet = {(one.title, _without_figures(one.what)) for one in alarms if one.silenced}
    needs = [one for one in needs if (one.title, _without_figures(one.what)) not in quiet]
    return Assessment(
        needs=tuple(needs), waits=tuple(_waits(status)),
        unknown=(*_unknown("the services", services), *_unknown("the lake server", lake), *_lags(status)),
    )  # fmt: skip


def _without_figures(words: str) -> str:
    """An alarm keeps the words that it was raised with; the figures in those of now are others."""
    return re.sub(r"[0-9][0-9.,:]*", "#", words)


def _unreadable(status: dict[str, Any]) -> Iterator[Need]:
    for topic in status["topics"]:
        for one in topic.get("unreadable", ()):
            what = f"{one['records']:,} records of schema {one['schema']} wait in quarantine"
            why, remedy = f"{one['reason']}: {one['why']}", str(one["remedy"])
            yield Need(title=f"topic {topic['name']}", what=what, why=why, remedy=remedy)


def _waits(status: dict[str, Any]) -> Iterator[Need]:
    for one in status["paused"]:
        command = f"`twinlake resume {one['name']} --{one['kind']}`"
        yield Need(title=one["what"], what=f"is paused by {one['by']}", why=one["words"], remedy=command)
    for version in status["versions"]:
        behind = version["lag_seconds"] or 0.0
        if behind > BEHIND_S and not version["stalled"] and not version.get("paused"):
            yield Need(
                title=f"{version['table']} {version['version']}", what=f"is {behind:,.0f} s behind its topic",
                why=f"{version['lag_records'] or 0:,} records are not in it yet; it goes on by itself",
            )  # fmt: skip


def _lags(status: dict[str, Any]) -> Iterator[Need]:
    for topic in status["topics"]:
        if topic["lag_records"] is None and not topic["error"] and not topic["paused"]:
            yield Need(
                title=f"topic {topic['name']}", what=f"the lag of topic {topic['name']} is not known",
                why="the broker did not say how many records it holds",
                remedy="`twinlake logs lake` says why",
            )  # fmt: skip


def _unknown(title: str, seen: Seen[Any]) -> Iterator[Need]:
    if not seen.is_old:
        return
    error = seen.error or TwinlakeError("no answer has come yet")
    if seen.age_s is None:
        what = f"{title} has not been heard" if title == "the lake server" else f"{title} have not been asked"
        remedy = error.remedy or "wait a moment; `twinlake status` says more"
        yield Need(title=title, what=what, why=f"{error.what} {error.why}".strip(), remedy=remedy)
    else:
        yield Need(
            title=title, what=f"the figures of {title} are {seen.age_s:,.0f} s old (the limit is {OLD_S:g})",
            why=f"{error.what} {error.why}".strip(), remedy=error.remedy or "`twinlake status` says more",
        )  # fmt: skip
