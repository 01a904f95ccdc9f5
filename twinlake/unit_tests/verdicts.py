"""Owns the verdicts of a case's records: each is written as its producer would, and judged by the witness."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from twinlake.base.times import format_moment
from twinlake.topics.contract import JSON
from twinlake.topics.registered import with_files
from twinlake.topics.topic import Topic
from twinlake.unit_tests.records import Record
from twinlake.unit_tests.values import micros
from twinlake.witness.ingest.judge import judge
from twinlake.witness.ingest.record import Raw, Rules
from twinlake.witness.question import Field
from twinlake.witness.refused import one_line

SCHEMA_ID = 1


def judged(topic: Topic, records: list[Record]) -> list[Record]:
    """The same records, each with its verdict, its reasons, and whether it is late. TestMistake for one that
    no producer can write."""
    is_json = topic.contract.format == JSON
    write = _as_json if is_json else _Framed(topic)
    raw = [
        Raw(
            value=None if one.event is None else write(one), key=one.key, timestamp=micros(one.timestamp),
            epoch=one.epoch, partition=one.partition, offset=one.offset,
        )
        for one in records
    ]  # fmt: skip
    rules = Rules(
        contract=topic.contract.to_json(),
        fields=tuple(map(Field.of, topic.newest.fields)),
        schemas={} if is_json else {SCHEMA_ID: with_files(topic.newest.registered, topic.newest.message)},
    )
    found = []
    for record, one in zip(records, judge(raw, rules), strict=True):
        if one.unsure:
            raise record.part.wrong(f"nobody knows the verdict of this record: {one.unsure}")
        found.append(record.judged(one.verdict, tuple(one.reasons), one.late))
    return found


def _as_json(record: Record) -> bytes:
    return _json(record.event).encode()


def _json(value: Any) -> str:
    """As the contract of a topic in JSON has it: a decimal with all its digits, a time with its zone."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {_json(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    if isinstance(value, datetime):
        return json.dumps(format_moment(value))
    return json.dumps(value.isoformat() if isinstance(value, date) else value)


class _Framed:
    """Writes records of a topic by its newest schema, in the registry's frame."""

    def __init__(self, topic: Topic) -> None:
        from twinlake.topics.values import value_writer

        self._topic = topic
        self._written = value_writer(topic, SCHEMA_ID)

    def __call__(self, record: Record) -> bytes:
        try:
            return self._written(record.event or {})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            why = f"no producer of {self._topic.name} can write this record: its schema refuses a value"
            raise record.part.wrong(why, one_line(error, 200)) from error
