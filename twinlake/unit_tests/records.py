"""Owns the records of a case: how Kafka had them, what is in them, which verdict the test expects."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from twinlake.base.as_json import to_json
from twinlake.base.errors import near
from twinlake.base.times import from_micros
from twinlake.topics import change_data
from twinlake.topics.contract import JSON, STRING
from twinlake.topics.topic import Topic
from twinlake.topics.verdict import REASONS, VALID, VERDICTS
from twinlake.unit_tests import values
from twinlake.unit_tests.fill import Filler
from twinlake.unit_tests.source import Part
from twinlake.witness.types import BINARY, BOOLEAN, INT, TIMESTAMP, Type, array, struct
from twinlake.witness.types import STRING as TEXT

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
"""When happened and came what does not say it."""
KEY, TOMBSTONE, VERDICT, REASON = "_key", "_tombstone", "_verdict", "_reasons"
_OF_KAFKA: dict[str, Type] = {
    "_timestamp": TIMESTAMP, "_ingested_at": TIMESTAMP, "_partition": INT, "_epoch": INT,
    TOMBSTONE: BOOLEAN, VERDICT: TEXT, REASON: array(TEXT),
}  # fmt: skip
"""What a record may say beside the fields of its event."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One record of a topic. `event` has all of the topic's fields, None for a record without a value."""

    part: Part
    event: Mapping[str, Any] | None
    key: bytes | None
    epoch: int
    partition: int
    offset: int
    timestamp: datetime
    """When Kafka appended it."""
    ingested_at: datetime
    expected: str
    """The verdict that the test expects, `valid` where it says nothing."""
    expected_reasons: tuple[str, ...] | None
    event_time: datetime | None
    verdict: str = VALID
    """What it gets, with `reasons` and whether it is late."""
    reasons: tuple[str, ...] = ()
    late: bool = False

    def judged(self, verdict: str, reasons: tuple[str, ...], late: bool) -> Record:
        return replace(self, verdict=verdict, reasons=reasons, late=late)


def records(topic: Topic, parts: list[Part]) -> list[Record]:
    """Those of one topic, in the order in which Kafka has them in each partition."""
    filler, offsets, found = Filler(topic), defaultdict[tuple[int, int], int](int), list[Record]()
    types = {field.name: Type.parse(field.type) for field in topic.newest.fields}
    for number, part in enumerate(parts, start=1):
        read = _Read(topic, types, part)
        place = (read.of("_epoch", 0), read.of("_partition", 0))
        before = found[-1].ingested_at if found else None
        found.append(read.record(filler, number, place, offsets[place], before))
        offsets[place] += 1
    return found


class _Read:
    """One record as it is written."""

    def __init__(self, topic: Topic, types: Mapping[str, Type], part: Part) -> None:
        self._topic, self._part, self._types = topic, part, types
        self._entries = part.mapping("a record")
        key = _key_type(topic)
        self._beside = _OF_KAFKA | ({} if key is None else {KEY: key})
        for name, entry in self._entries.items():
            if name not in types and name not in self._beside:
                known = (*types, *self._beside)
                raise entry.key.wrong(f"topic {topic.name} has no field {name!r}{near(name, known)}")
        self.given = {
            name: values.read(entry, types[name], name)
            for name, entry in self._entries.items()
            if name in types
        }

    def of(self, name: str, otherwise: Any) -> Any:
        """What is said beside the event."""
        if name not in self._entries:
            return otherwise
        return values.read(self._entries[name], self._beside[name], name)

    def record(
        self, filler: Filler, number: int, place: tuple[int, int], offset: int, before: datetime | None
    ) -> Record:
        happened = self._event_time(self.given)
        timestamp = self.of("_timestamp", happened or FIRST)
        event = None if self.of(TOMBSTONE, False) else filler.event(number, self.given, happened or timestamp)
        ingested_at = self.of("_ingested_at", max(timestamp, before or timestamp))
        expected, reasons = self._expected()
        return Record(
            part=self._part, event=event, key=self._key(event or self.given), epoch=place[0],
            partition=place[1], offset=offset, timestamp=timestamp, ingested_at=ingested_at,
            expected=expected, expected_reasons=reasons,
            event_time=None if event is None else self._event_time(event),
        )  # fmt: skip

    def _event_time(self, event: Mapping[str, Any]) -> datetime | None:
        contract = self._topic.contract
        if contract.change_data:
            milliseconds = (event.get(change_data.SOURCE) or {}).get("ts_ms")
            return None if milliseconds is None else from_micros(milliseconds * 1000)
        found = event.get(contract.event_time or "")
        return found if isinstance(found, datetime) else None

    def _expected(self) -> tuple[str, tuple[str, ...] | None]:
        verdict = self.of(VERDICT, VALID)
        if verdict not in VERDICTS:
            raise self._entries[VERDICT].wrong(f"there is no verdict {verdict!r}{near(verdict, VERDICTS)}")
        reasons = self.of(REASON, None)
        for one in reasons or ():
            if one.split(":")[0] not in REASONS:
                raise self._entries[REASON].wrong(f"there is no reason {one!r}{near(one, REASONS)}")
        if reasons and verdict == VALID:
            why = "it is expected to be valid, and has reasons why it is not"
            raise self._entries[REASON].wrong(why, f"write `{VERDICT}: invalid` beside them")
        return verdict, None if reasons is None else tuple(reasons)

    def _key(self, event: Mapping[str, Any]) -> bytes | None:
        """As it is written; else what the primary key's fields say, where the contract says how."""
        contract = self._topic.contract
        if KEY in self._entries:
            given = self.of(KEY, None)
            if isinstance(given, dict):
                return json.dumps(to_json(given)).encode()
            return given.encode() if isinstance(given, str) else given
        found = {name: event.get(name) for name in contract.keys}
        if contract.key_format == JSON:
            return json.dumps(to_json(found)).encode()
        if contract.key_format == STRING and found:
            value = next(iter(found.values()))
            return None if value is None else str(value).encode()
        return None


def _key_type(topic: Topic) -> Type | None:
    contract = topic.contract
    if contract.key_format == JSON:
        return struct(*((one.name, Type.parse(one.type)) for one in contract.columns if one.key))
    return None if contract.key_format is None else {STRING: TEXT}.get(contract.key_format, BINARY)
