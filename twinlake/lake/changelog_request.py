"""ChangelogRequest: what somebody has asked of a changelog that is to start."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

_OF_ALL = ("topic",)


@dataclass(frozen=True, kw_only=True)
class ChangelogRequest:
    """`topic` alone is for every table; all else is for one whose rows are sent as events. Either `topic` or
    `topic_from` is given, a column whose value is one of `topics`. `begin` says where one begins that has
    never sent anything."""

    topic: str | None = None
    topic_from: str | None = None
    topics: tuple[str, ...] = ()
    other_topic: str | None = None
    position_topic: str | None = None
    key: tuple[str, ...] = ()
    partition_by: Literal["key", "source"] | None = None
    format: Literal["avro", "json"] = "avro"
    headers: Literal["record-id", "none"] = "record-id"
    begin: Literal["now", "beginning"] = "now"

    @property
    def of_events(self) -> tuple[str, ...]:
        """The names of what is given and that changes of rows have not."""
        named = [one for one in fields(self) if one.name not in _OF_ALL]
        return tuple(
            "from" if one.name == "begin" else one.name
            for one in named
            if getattr(self, one.name) != one.default
        )
