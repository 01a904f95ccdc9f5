"""Owns the custom properties of a topic's contract: what they are called, and what goes with what."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from twinlake.base.errors import ContractError, UsageError
from twinlake.base.times import parse_duration
from twinlake.topics import change_data
from twinlake.topics.avro_type import COLUMN_NAME
from twinlake.topics.contract import (
    AVRO,
    BYTES,
    DELETE,
    FORMATS,
    IGNORE,
    INVALID,
    JSON,
    KEY_FORMATS,
    NULL_VALUES,
    QUARANTINE,
    STOP,
    STRING,
    UNREADABLE,
    Column,
    Contract,
    unreadable_by_default,
)

TOPIC_PROPERTIES = {
    "eventTime": "event_time", "lateAfter": "late_after", "discardAfter": "discard_after",
    "futureTolerance": "future_tolerance", "uniqueWithin": "unique_within", "format": "format",
    "nullValues": "null_values", "keyFormat": "key_format", "changeData": "change_data",
    "unreadableRecords": "unreadable_records",
}  # fmt: skip
"""Custom property -> what it is called in `Contract`."""
MEANINGS = {
    "eventTime": "the column with the event's own time, a required timestamp; of change data it is left out: "
    "the source's time is taken",
    "lateAfter": "a record whose event time is older than this when Kafka has it is late: it counts, and "
    "amends windows that were final",
    "discardAfter": "one that is still older is too_late: it is kept, and in no table; longer than "
    "lateAfter; of change data it is left out: none is too late",
    "futureTolerance": "how far the event time may be after Kafka's; a record beyond that is invalid",
    "uniqueWithin": "how long after a record another one with its unique value is a duplicate, by Kafka's "
    "time; beside a unique field alone, and of change data: how long after a change its redelivery may come",
    "format": "what values are written in; with json the contract is the schema, with the others it is a "
    "file of schemas/",
    "nullValues": "what a record without a value is: a mistake, nothing, or the delete of its key, which "
    "needs keyFormat",
    "keyFormat": "what keys are written in: definitions see them as _key; without it keys are kept and not "
    "shown",
    "changeData": "the database whose changes the records are, in the envelopes of Debezium",
    "unreadableRecords": "what is done with a record that the active schema cannot read: it waits in "
    "quarantine, or stops the topic; not with format json",
}
"""For an editor and the docs."""
_NEEDED = "refused"
WITHOUT = {
    "eventTime": _NEEDED, "lateAfter": _NEEDED, "discardAfter": _NEEDED, "futureTolerance": _NEEDED,
    "uniqueWithin": "no duplicates", "format": f"`{AVRO}`", "nullValues": f"`{INVALID}`",
    "keyFormat": "keys are not shown", "changeData": "a topic of events",
    "unreadableRecords": f"`{QUARANTINE}`; of change data `{STOP}`",
}  # fmt: skip
"""What a contract that does not say it means."""
CHOICES = {
    "format": FORMATS,
    "nullValues": NULL_VALUES,
    "keyFormat": KEY_FORMATS,
    "changeData": change_data.DATABASES,
    "unreadableRecords": UNREADABLE,
}


def read(found: list[Any], columns: tuple[Column, ...], unique: str | None, file: str) -> dict[str, Any]:
    """Those of `customProperties`, as `Contract` calls them, with what they imply."""
    custom = _given(found, file)
    if custom.get("format") == JSON and "unreadable_records" in custom:
        why = "unreadableRecords beside format json: the contract is its schema, and reads every record"
        raise ContractError(file, "customProperties", why, "remove it")
    return _of_changes(custom, columns, unique, file) if "change_data" in custom else custom


def refuse_inconsistent(contract: Contract, file: str) -> None:
    """ContractError for properties that do not go with each other, or with the columns."""
    times = {
        "lateAfter": contract.late_after, "discardAfter": contract.discard_after,
        "futureTolerance": contract.future_tolerance,
    }  # fmt: skip
    if contract.event_time is None:
        more = {"uniqueWithin": contract.unique_within, "keyFormat": contract.key_format}
        given = [key for key, value in {**times, **more}.items() if value]
        if contract.format != AVRO or contract.null_values != INVALID:
            given.append("format or nullValues")
        if contract.unreadable_records != QUARANTINE:
            given.append("unreadableRecords")
        if given or contract.unique:
            what = ", ".join(given) or "unique"
            why = f"eventTime is missing, but {what} is given"
            raise ContractError(file, "customProperties", why, "say it of a topic; a table has neither")
        return
    for index, one in enumerate(contract.columns):  # `_offset` and the like are the log's own
        if not COLUMN_NAME.fullmatch(one.name):
            why = f"{one.name!r} is not made of letters, digits and _, a letter first"
            raise ContractError(file, f"schema[0].properties[{index}].name", why, "rename it in the records")
    column = contract.column(contract.event_time)
    timed = column is not None and column.type == "timestamp" and column.required
    if not timed and contract.change_data is None:
        raise ContractError(
            file, "customProperties", f"eventTime {contract.event_time!r} is not a required timestamp"
        )
    for key, value in times.items():
        if value is None and not (contract.change_data and key == "discardAfter"):
            raise ContractError(file, "customProperties", f"{key} is missing", "a topic's contract needs it")
    assert contract.late_after  # held by the loop above
    if contract.discard_after and contract.late_after >= contract.discard_after:
        raise ContractError(file, "customProperties", "lateAfter must be shorter than discardAfter")
    identified = contract.unique is not None or contract.change_data is not None
    if identified != (contract.unique_within is not None):
        if contract.change_data:
            why = "uniqueWithin is missing: how long after a change its redelivery may come"
            raise ContractError(file, "customProperties", why, "a connector's longest outage, and some more")
        raise ContractError(file, "customProperties", "a unique property and uniqueWithin need each other")
    _refuse_keys(contract, file)


def _given(found: list[Any], file: str) -> dict[str, Any]:
    custom: dict[str, str | timedelta] = {}
    for index, one in enumerate(found):
        path = f"customProperties[{index}]"
        key, value = one["property"], one["value"]
        if key not in TOPIC_PROPERTIES:
            raise ContractError(
                file, f"{path}.property", f"unknown property {key!r}", f"known: {', '.join(TOPIC_PROPERTIES)}"
            )
        if TOPIC_PROPERTIES[key] in custom:
            raise ContractError(file, f"{path}.property", f"{key!r} is given twice")
        if not isinstance(value, str):
            raise ContractError(file, f"{path}.value", "it must be text")
        if key in CHOICES:
            if value not in CHOICES[key]:
                known = ", ".join(CHOICES[key])
                why = f"{value!r} is not a value of {key}"
                raise ContractError(file, f"{path}.value", why, f"known: {known}")
            custom[TOPIC_PROPERTIES[key]] = value
            continue
        try:
            custom[TOPIC_PROPERTIES[key]] = value if key == "eventTime" else parse_duration(value)
        except UsageError as error:
            raise ContractError(file, f"{path}.value", error.what, error.remedy) from error
    return custom


def _of_changes(
    custom: dict[str, Any], columns: tuple[Column, ...], unique: str | None, file: str
) -> dict[str, Any]:
    """The properties of a topic of change data, with those that it has by itself."""
    own = {
        "event_time": f"changes happen at their {change_data.EVENT_TIME}",
        "discard_after": "a change that is left out, however late it is, leaves a wrong row for ever",
        "null_values": "deletes are changes of their own, and the null values after them mean nothing",
    }
    named = {name: key for key, name in TOPIC_PROPERTIES.items()}
    for name, why in own.items():
        if name in custom:
            raise ContractError(
                file, "customProperties", f"{named[name]} beside changeData: {why}", "remove it"
            )
    if custom.get("key_format") == JSON:
        why = "keyFormat json beside changeData: the fields of the key are in before and after"
        raise ContractError(file, "customProperties", why, "leave it out, or use string or bytes")
    if unique is not None:
        why = f"{unique!r} is unique beside changeData: redeliveries are known by the source's position"
        raise ContractError(file, "schema[0].properties", why, "remove it")
    if (written := custom.get("format", AVRO)) not in (AVRO, JSON):
        why = f"changeData beside format {written}: it is read in avro and json"
        raise ContractError(file, "customProperties", why, "use a connector's converter for one of them")
    if found := change_data.misfit(columns, custom["change_data"]):
        raise ContractError(file, *found)
    # the key tells rows apart whose properties the contract does not name
    implied = {
        "event_time": change_data.EVENT_TIME, "null_values": IGNORE, "key_format": BYTES,
        "unreadable_records": unreadable_by_default(custom["change_data"]),
    }  # fmt: skip
    return {**implied, **custom}


def _refuse_keys(contract: Contract, file: str) -> None:
    """What the contract says of keys must be enough to read them, and to know what a delete deletes."""
    keys = [column for column in contract.columns if column.key]
    if contract.null_values == DELETE:
        if contract.key_format is None:
            why = "keyFormat is missing: a record without a value deletes its key"
            raise ContractError(file, "customProperties", why, f"known: {', '.join(KEY_FORMATS)}")
        if contract.unique in [column.name for column in keys]:
            why = f"{contract.unique!r} is unique and in the key: what changes a row would be a duplicate"
            raise ContractError(file, "schema[0].properties", why, "make another column unique")
    if contract.key_format == JSON and not keys:
        why = "keyFormat is json, and no property is in the primaryKey: these are the fields of the key"
        raise ContractError(file, "schema[0].properties", why, "mark them with primaryKey: true")
    type_ = {STRING: "string", BYTES: "binary"}.get(contract.key_format or "")
    if type_ and keys and [column.type for column in keys] != [type_]:
        names = ", ".join(f"{column.name} {column.type}" for column in keys)
        why = f"keyFormat is {contract.key_format}, and the primaryKey is {names}: it must be one {type_}"
        raise ContractError(file, "schema[0].properties", why, "or use keyFormat json")
