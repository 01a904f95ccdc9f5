"""What an alarm is, and the message about one that a receiver gets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

from twinlake.base.errors import visible

Severity = Literal["critical", "warning"]
Event = Literal["raised", "over", "test"]
KINDS: Mapping[str, Severity] = {
    "service": "critical",
    "restarts": "critical",
    "stopped": "critical",
    "stalled": "critical",
    "unequal": "critical",
    "damaged": "critical",
    "disk": "critical",
    "freshness": "warning",
    "quiet": "warning",
    "quarantine": "warning",
    "approval": "warning",
    "certificate": "warning",
    "backup": "warning",
    "topic": "warning",
    "unknown": "warning",
}
"""Every kind of alarm, each with a section in docs/alarms.md; how grave it is."""
SUBJECT = 150
DOCS = "docs/alarms.md#alarm-"


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Something that is not well now. `about` is the table or topic, where it is about one; `remedy` has
    commands between backticks."""

    kind: str
    title: str
    what: str
    why: str = ""
    remedy: str = ""
    about: str | None = None

    @property
    def key(self) -> str:
        """Two conditions of one key are the same one, however its words and numbers change."""
        return f"{self.kind}/{self.title}"


@dataclass(frozen=True, kw_only=True)
class Alarm(Condition):
    """A condition that has lasted. `since` is RFC 3339, UTC; `owners` are mail addresses."""

    since: str
    owners: tuple[str, ...] = ()
    silenced: bool = False

    @property
    def severity(self) -> Severity:
        return KINDS.get(self.kind, "warning")  # a book may be of another version

    @property
    def id(self) -> str:
        """Of this time that it is raised: it is the same however often a message about it is sent."""
        return hashlib.sha256(f"{self.key} {self.since}".encode()).hexdigest()[:16]

    @property
    def docs(self) -> str:
        return f"{DOCS}{self.kind}"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "owners": list(self.owners)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        known = {one.name: data[one.name] for one in fields(cls) if one.name in data}
        return cls(**{**known, "owners": tuple(known.get("owners", ()))})


@dataclass(frozen=True, kw_only=True)
class Message:
    """What a receiver gets, once for each event; the same `id` again is the same message again."""

    event: Event
    at: str
    alarm: Alarm
    console: str = ""

    @property
    def id(self) -> str:
        return f"{self.alarm.id}-{self.event}"

    @property
    def subject(self) -> str:
        """One line."""
        words = {"over": "over: ", "test": "test: "}.get(self.event, "")
        said = " ".join(f"{self.alarm.title}: {self.alarm.what}".split())
        return f"[Twinlake] {words}{self.alarm.severity}: {visible(said)[:SUBJECT]}"

    @property
    def text(self) -> str:
        """For a person, with nothing that a terminal or a mail program takes for more than text."""
        alarm = self.alarm
        since = f"since {alarm.since}" + (f", over at {self.at}" if self.event == "over" else "")
        lines = [f"{alarm.title}: {alarm.what}", f"({alarm.severity}, {since})"]
        lines += [f"Why: {alarm.why}"] if alarm.why else []
        lines += [f"What to do: {alarm.remedy}"] if alarm.remedy and self.event != "over" else []
        lines += [f"More: {alarm.docs}"]
        lines += [f"Console: {self.console}"] if self.console else []
        return "\n".join(visible(line) for part in lines for line in part.splitlines()) + "\n"

    def to_json(self) -> dict[str, Any]:
        """What a webhook is sent."""
        alarm = self.alarm
        return {
            "id": self.id, "event": self.event, "at": self.at, "kind": alarm.kind, "severity": alarm.severity,
            "since": alarm.since, "title": alarm.title, "about": alarm.about, "what": alarm.what,
            "why": alarm.why, "remedy": alarm.remedy, "docs": alarm.docs, "owners": list(alarm.owners),
            "console": self.console, "text": self.text,
        }  # fmt: skip

    def kept(self) -> dict[str, Any]:
        """For the file that keeps it until it is sent."""
        return {"event": self.event, "at": self.at, "alarm": self.alarm.to_json(), "console": self.console}

    @classmethod
    def of_kept(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "alarm": Alarm.from_json(data["alarm"])})
