"""New topic: what its files say, made of a sample, of its schema, or of nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import yaml

from twinlake.base.errors import ContractError, UsageError
from twinlake.base.times import EPOCH, parse_moment
from twinlake.scaffold.contract_text import TopicTerms, topic_contract
from twinlake.scaffold.infer import LeftOut, inferred
from twinlake.scaffold.kafka_topic import JsonSample, Registered
from twinlake.scaffold.sample import JsonObject
from twinlake.topics import change_data
from twinlake.topics.contract import JSON, Column
from twinlake.topics.contract_file import parse_contract
from twinlake.topics.formats import AVRO, ENDINGS, PROTOBUF
from twinlake.topics.schema import FILE_NAME, Schema
from twinlake.topics.spark_type import is_nested

_TIMES = (
    "event_time",
    "event_timestamp",
    "event_at",
    "timestamp",
    "occurred_at",
    "happened_at",
    "time",
    "ts",
)
"""Columns that are taken for the event time where there are several, by what they are called."""
_IDS = ("event_id", "message_id")
"""Columns that are taken for an event's id without being asked for, where no two records share one: any other
may be of what the event is about, and its next event would be a duplicate."""
_EPOCHS = {"seconds": (10**9, 10**10), "milliseconds": (10**12, 10**13), "microseconds": (10**15, 10**16)}
_ENVELOPE = {"before", "after", "source", "op"}


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Columns that a person has named."""

    event_time: str | None = None
    id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Lags:
    """How far Kafka's times of a sample are after, and before, the event's own."""

    behind: timedelta = timedelta(0)
    ahead: timedelta = timedelta(0)


@dataclass(frozen=True, kw_only=True)
class Made:
    """The texts of a topic's files, and what a person should know of them."""

    contract: str
    remarks: tuple[str, ...] = ()
    schema: str | None = None
    """The text of its first schema, where that is new, too."""
    ending: str = ENDINGS[AVRO]
    """How that one's file ends."""


def refuse_name(name: str) -> None:
    """UsageError for what no topic's files can be called."""
    if not FILE_NAME.fullmatch(f"{name}.v1.avsc"):
        raise UsageError(
            f"a topic cannot be called {name!r}",
            "its name is that of its files, views and columns: small letters, digits and _, a letter first",
            "choose another name; of a Kafka topic that is called otherwise, send its records to one that is",
        )  # fmt: skip


def of_sample(
    name: str, records: Sequence[JsonObject], source: str, chosen: Chosen, times_ms: Sequence[int] = ()
) -> Made:
    """The contract of a topic in JSON by which all these records are valid.

    `times_ms` are Kafka's of the same records, where it has them. UsageError where no column is clearly the
    event time.
    """
    found = inferred(records)
    event_time = _event_time(found.columns, chosen.event_time, _no_time(records, found.columns))
    unique, remarks = _unique(found.columns, chosen.id, records)
    lags = _lags([str(one[event_time]) for one in records], times_ms) if times_ms else Lags()
    left_out = tuple(f"left out: {one.path}: {one.why}" for one in found.left_out)
    terms = TopicTerms(
        name=name, columns=found.columns, format=JSON, event_time=event_time, unique=unique,
        remarks=(
            f"Made of {len(records):,} records of {source} by `twinlake new topic`, and yours from now on.",
            *(_SAID_OF_COLUMNS), *left_out,
        ),
    )  # fmt: skip
    return Made(contract=_sound(_within(terms, lags)), remarks=(*remarks, *_counted(found.left_out)))


def of_schema(schema: Schema, chosen: Chosen) -> Made:
    """The contract of a topic whose records name a schema of the registry."""
    columns = tuple(
        Column(name=field.name, type=field.type, required=not field.nullable) for field in schema.fields
    )
    if schema.format == PROTOBUF:  # which has no time that is always there: the contract asks for it
        timed = [replace(one, required=one.required or one.type == "timestamp") for one in columns]
        time = _event_time(timed, chosen.event_time, _no_avro_time(columns))
        columns = tuple(replace(one, required=True) if one.name == time else one for one in columns)
    found = [
        one for one in change_data.DATABASES
        if schema.format == AVRO and change_data.misfit(columns, one) is None
    ]  # fmt: skip
    unique, event_time, remarks = None, None, tuple[str, ...]()
    if found and chosen.event_time is None:
        remarks = (f"these are changes of a {found[0]} database: docs/change_data.md says what that means",)
    else:
        event_time = _event_time(columns, chosen.event_time, _no_avro_time(columns))
        unique, remarks = _unique(columns, chosen.id, None)
    terms = TopicTerms(
        name=schema.topic, columns=columns, format=schema.format, event_time=event_time, unique=unique,
        change_data=found[0] if found and event_time is None else None,
        remarks=(
            "Made of the topic's schema by `twinlake new topic`, and yours from now on.", *_SAID_OF_COLUMNS,
        ),
    )  # fmt: skip
    return Made(contract=_sound(terms), remarks=remarks)


def of_nothing(name: str, chosen: Chosen) -> Made:
    """A topic in JSON to begin with: an id and a time."""
    event_id, event_time = chosen.id or "event_id", chosen.event_time or "happened_at"
    columns = (
        Column(name=event_id, type="string", required=True),
        Column(name=event_time, type="timestamp", required=True),
    )
    terms = TopicTerms(
        name=name, columns=columns, format=JSON, event_time=event_time, unique=event_id,
        remarks=(
            "A topic in JSON to begin with. Write the fields of its records below `properties`, like",
            "  - name: amount",
            "    logicalType: number           # or string, integer, boolean, date, timestamp, object, array",
            "    physicalType: decimal(12,2)   # of number; or double, bigint, ... (docs/contracts.md)",
            *_SAID_OF_COLUMNS,
        ),
    )  # fmt: skip
    return Made(contract=_sound(terms))


def of_kafka(name: str, found: JsonSample | Registered, chosen: Chosen) -> Made:
    """What was found of the topic in Kafka as files."""
    if isinstance(found, JsonSample):
        made = of_sample(name, found.records, f"the topic {name}", chosen, found.times_ms)
    else:
        made = of_schema(found.schema, chosen)
        made = replace(made, schema=found.schema.file_text, ending=ENDINGS[found.schema.format])
    return replace(made, remarks=(*found.remarks, *made.remarks))


_SAID_OF_COLUMNS = (
    "`eventTime` says when an event happened, `lateAfter` and `discardAfter` how long after that Kafka may",
    "have it, `unique: true` what tells two events apart. `required: true` and other rules: docs/schemas.md.",
)


def _sound(terms: TopicTerms) -> str:
    """The text, which its own reader takes."""
    text = topic_contract(terms)
    try:
        parse_contract(yaml.safe_load(text), name=terms.name, file=f"contracts/{terms.name}.yaml")
    except ContractError as error:
        raise UsageError(
            f"no contract of topic {terms.name} can be made of this", f"{error.path}: {error.why_text}",
            error.remedy or "write it by hand",
        ) from error  # fmt: skip
    return text


def _event_time(columns: Iterable[Column], asked: str | None, none: tuple[str, str]) -> str:
    columns = tuple(columns)
    fit = [one.name for one in columns if one.type == "timestamp" and one.required]
    if asked is not None:
        if asked in fit:
            return asked
        there = next((one for one in columns if one.name == asked), None)
        why = (
            "there is no such column" if there is None
            else f"it is {there.type}" if there.type != "timestamp" else "some records have none"
        )  # fmt: skip
        known = f"candidates: {', '.join(fit)}" if fit else none[1]
        raise UsageError(
            f"{asked} cannot be the event time", f"{why}; it is a timestamp of every record", known
        )
    if len(fit) == 1:
        return fit[0]
    named = [one for one in fit if _plain(one) in {_plain(time) for time in _TIMES}]
    if len(named) == 1:
        return named[0]
    if fit:
        raise UsageError(
            "several columns could be the event time", f"candidates: {', '.join(fit)}",
            f"name the one that says when the event happened: --event-time {fit[0]}",
        )  # fmt: skip
    raise UsageError("no column can be the event time", *none)


def _no_time(records: Sequence[JsonObject], columns: Sequence[Column]) -> tuple[str, str]:
    """(why, what to do) where no record says by itself when it happened."""
    if columns and all(_ENVELOPE <= set(one) for one in records):
        return (
            "the records are change data, as Debezium sends it",
            "write its contract as docs/change_data.md shows",
        )
    why = ["it is a timestamp of every record: text like 2026-01-31T12:00:00Z, with an offset"]
    for column in columns:
        values = [one[column.name] for one in records if one.get(column.name) is not None]
        if column.type == "timestamp":
            why.append(f"{column.name} is missing or null in {len(records) - len(values):,} records")
        elif column.type == "date":
            why.append(f"{column.name} is a date")
        elif column.type == "bigint" and (unit := _epoch(values)):
            why.append(f"{column.name} looks like {unit} since 1970, which JSON has as a number alone")
        elif column.type == "string" and _is_nearly_a_time(values):
            why.append(f"{column.name} is like {values[0]!r}")
    return "; ".join(why), "send a time so, or describe the records by an Avro schema (timestamp-millis)"


def _no_avro_time(columns: Sequence[Column]) -> tuple[str, str]:
    why = [
        "it is a timestamp that is never null: a long of logicalType timestamp-millis or timestamp-micros, "
        "of JSON Schema a required string of format date-time, of Protobuf a google.protobuf.Timestamp"
    ]
    for column in columns:
        if column.type == "timestamp":
            why.append(f"{column.name} may be null")
        elif column.type == "bigint" and re.search(r"(time|at|ts|_ms|millis)$", column.name, re.IGNORECASE):
            why.append(f"{column.name} is a long without a logicalType")
    return "; ".join(why), "register a schema with one, then ask again"


def _unique(
    columns: Sequence[Column], asked: str | None, records: Sequence[JsonObject] | None
) -> tuple[str | None, tuple[str, ...]]:
    """The column that tells events apart, and what to know of it; `records` are None where nobody has any."""
    if asked is not None:
        there = next((one for one in columns if one.name == asked), None)
        if there is None or is_nested(there.type):
            fit = ", ".join(one.name for one in columns if not is_nested(one.type))
            wrong = "there is no such column" if there is None else f"{there.type} is not an id"
            raise UsageError(f"{asked} cannot be the id", wrong, f"known: {fit}")
        again = _repeated(asked, records or ())
        said = (f"{again:,} records of the sample have an id that came before: duplicates",) if again else ()
        return asked, said
    for one in columns:
        if one.required and one.type in ("string", "int", "bigint") and _plain(one.name) in map(_plain, _IDS):
            if again := _repeated(one.name, records or ()):
                why = f"{one.name} came before in {again:,} records of the sample, so it is taken for no id"
                return None, (f"{why}: --id {one.name} makes these duplicates",)
            return one.name, ()
    return None, ("no column is clearly an event's id, so nothing is a duplicate: --id COLUMN names one",)


def _repeated(name: str, records: Iterable[JsonObject]) -> int:
    values = [json.dumps(one[name]) for one in records if one.get(name) is not None]
    return len(values) - len(set(values))


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _epoch(values: Sequence[Any]) -> str | None:
    return next(
        (
            unit
            for unit, (low, high) in _EPOCHS.items()
            if values and all(low <= one < high for one in values)
        ),
        None,
    )


def _is_nearly_a_time(values: Sequence[Any]) -> bool:
    return bool(values) and all(re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", one) for one in values)


def _lags(event_times: Sequence[str], times_ms: Sequence[int]) -> Lags:
    behind = [
        EPOCH + timedelta(milliseconds=at) - parse_moment(event)
        for event, at in zip(event_times, times_ms, strict=True)
    ]
    return Lags(behind=max(behind, default=timedelta(0)), ahead=-min(behind, default=timedelta(0)))


def _within(terms: TopicTerms, lags: Lags) -> TopicTerms:
    """The same, tolerant of twice what the sample has of lateness."""
    day, minute = timedelta(days=1), timedelta(minutes=1)
    discard = max(terms.discard_after, -(-2 * lags.behind // day) * day)
    future = max(terms.future_tolerance, -(-2 * lags.ahead // minute) * minute)
    return replace(terms, discard_after=discard, future_tolerance=future)


def _counted(left_out: Sequence[LeftOut]) -> tuple[str, ...]:
    return tuple(f"left out of the contract: {one.path}: {one.why}" for one in left_out)
