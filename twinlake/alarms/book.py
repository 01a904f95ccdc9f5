"""The book of alarms: which there are, and what is not sent yet; a file that a kill leaves whole.

`run/alarms.json` of the data directory. The service `alarms` writes it; commands and the console read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

import structlog

from twinlake.alarms.alarm import Alarm, Condition, Message
from twinlake.base.errors import TwinlakeError
from twinlake.base.files import SECRET, replace_file
from twinlake.base.times import format_moment, parse_moment

journal = structlog.get_logger(__name__)

LASTS_S: Mapping[str, float] = {"service": 20.0, "unknown": 20.0}
"""So long a condition must last before it is an alarm: a service that is started again takes some seconds."""
AT_LEAST_S = 2.0
OVER_S = 15.0
"""One that has not held for so long is over; one that comes and goes is not sent each time."""
MOST_UNSENT = 10_000
"""Of each receiver. Beyond it the oldest go, which the book counts."""


@dataclass(frozen=True, kw_only=True)
class Silence:
    """No new alarm of `what` (a kind, a table, a topic or a title) is sent until then; that one is over which
    was sent before is."""

    what: str
    until: str
    reason: str = ""
    by: str = ""

    def covers(self, one: Condition, now: datetime) -> bool:
        named = (one.kind, one.about, one.title, one.key)
        return self.what in named and now < parse_moment(self.until)


@dataclass(kw_only=True)
class Book:
    """`seen` and `held` are, by key, when a condition was seen first and last; `unsent` is by receiver."""

    looked_at: str = ""
    alarms: dict[str, Alarm] = field(default_factory=dict)
    unsent: dict[str, list[Message]] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    """By receiver, how many messages were left out because too many waited."""
    seen: dict[str, datetime] = field(default_factory=dict)
    held: dict[str, datetime] = field(default_factory=dict)
    _sent: set[str] = field(default_factory=set)
    """Keys of the alarms that receivers were sent."""

    def look(
        self,
        found: Iterable[Condition],
        owners: Mapping[str, tuple[str, ...]],
        silences: Iterable[Silence],
        now: datetime,
        known: bool = True,
    ) -> list[Message]:
        """What is to be sent after a look at `now`. `owners` are by table or topic. What was not `known` says
        of no alarm that it is over."""
        quiet = list(silences)
        conditions = {one.key: one for one in found}
        messages = list[Message]()
        for times in (self.seen, self.held):  # a clock that went back says nothing of how long
            times.update({key: now for key, at in times.items() if at > now})
        for key, one in conditions.items():
            first = self.seen.setdefault(key, now)
            self.held[key] = now
            if key not in self.alarms:
                if now - first >= timedelta(seconds=LASTS_S.get(one.kind, AT_LEAST_S)):
                    self._raise(one, owners, first)
            else:
                alarm = self.alarms[key]
                self.alarms[key] = replace(alarm, what=one.what, why=one.why, remedy=one.remedy)
        if not known:
            self.held.update(dict.fromkeys(self.seen, now))
        for key in list(self.seen):
            if key not in conditions and known and now - self.held[key] >= timedelta(seconds=OVER_S):
                del self.seen[key], self.held[key]
                if (over := self.alarms.pop(key, None)) and key in self._sent:
                    messages.append(Message(event="over", at=format_moment(now), alarm=over))
        for key, alarm in self.alarms.items():
            is_silent = any(one.covers(alarm, now) for one in quiet)
            if key not in self._sent and not is_silent:
                self._sent.add(key)
                messages.append(Message(event="raised", at=format_moment(now), alarm=alarm))
            self.alarms[key] = replace(alarm, silenced=is_silent)
        self._sent &= self.alarms.keys()
        self.looked_at = format_moment(now)
        return messages

    def put(self, receivers: Iterable[str], messages: Iterable[Message]) -> None:
        """Each receiver gets these, after what waits for it."""
        new = list(messages)
        for name in receivers:
            waiting = self.unsent.setdefault(name, [])
            waiting += new
            if (many := len(waiting) - MOST_UNSENT) > 0:
                del waiting[:many]
                self.lost[name] = self.lost.get(name, 0) + many

    def sent(self, receiver: str, id: str) -> None:
        """The receiver has accepted the message of this id."""
        self.unsent[receiver] = [one for one in self.unsent.get(receiver, ()) if one.id != id]

    def later(self, receiver: str, id: str) -> None:
        """The receiver has not accepted this message: those of other alarms are tried before it is again.
        Those of its own stay behind it: that an alarm is over comes after that it was raised."""
        waiting = self.unsent.get(receiver, [])
        mine = {one.alarm.id for one in waiting if one.id == id}
        self.unsent[receiver] = sorted(waiting, key=lambda one: one.alarm.id in mine)

    def keep_receivers(self, names: Iterable[str]) -> None:
        """What waits for a receiver that there is no more is not sent."""
        self.unsent = {name: self.unsent.get(name, []) for name in names}

    def _raise(self, one: Condition, owners: Mapping[str, tuple[str, ...]], first: datetime) -> None:
        self.alarms[one.key] = Alarm(
            kind=one.kind, title=one.title, what=one.what, why=one.why, remedy=one.remedy, about=one.about,
            since=format_moment(first), owners=owners.get(one.about or "", ()),
        )  # fmt: skip

    def save(self, file: Path) -> None:
        """Whole or not at all."""
        replace_file(file, json.dumps(self.to_json(), indent=1), SECRET)

    def to_json(self) -> dict[str, Any]:
        return {
            "looked_at": self.looked_at,
            "alarms": [one.to_json() for one in self.alarms.values()],
            "sent": sorted(self._sent),
            "unsent": {name: [one.kept() for one in waiting] for name, waiting in self.unsent.items()},
            "lost": self.lost,
        }

    @classmethod
    def load(cls, file: Path, now: datetime) -> Self:
        """As it was left; an empty one where there is none, or none that can be read. Alarms that were in it
        are over only once they have not held for a while from `now` on."""
        data = read(file)
        made = cls(looked_at=data.get("looked_at", ""), lost=data.get("lost", {}))
        try:
            for one in map(Alarm.from_json, data.get("alarms", ())):
                made.alarms[one.key] = one
                made.seen[one.key], made.held[one.key] = parse_moment(one.since), now
            made._sent = set(data.get("sent", ()))
            made.unsent = {
                name: [Message.of_kept(one) for one in waiting]
                for name, waiting in data.get("unsent", {}).items()
            }
        except (TypeError, KeyError, ValueError, AttributeError, TwinlakeError) as error:
            aside = str(file.replace(file.with_suffix(".unread")))
            journal.error("the book of alarms cannot be read; it begins again", aside=aside, why=str(error))
            return cls()
        return made


def read(file: Path) -> dict[str, Any]:
    """The book's content; empty where there is none."""
    try:
        found = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
