"""Owns the reading of `contracts/*.yaml`: the standard's JSON Schema first, then our own rules."""

from __future__ import annotations

import json
from collections.abc import Hashable
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft201909Validator

from jobs.errors import ContractError, UsageError
from jobs.times import parse_duration
from jobs.topics import change_data
from jobs.topics.contract import (
    AVRO,
    BYTES,
    DELETE,
    FORMATS,
    IGNORE,
    INVALID,
    JSON,
    KEY_FORMATS,
    NULL_VALUES,
    STRING,
    Column,
    Contract,
    Rule,
)
from jobs.topics.contract_column import column_type
from jobs.topics.spark_type import is_nested
from jobs.topics.verdict import ABOVE_MAXIMUM, BELOW_MINIMUM, EMPTY, MISSING, NOT_ALLOWED, TOO_LONG

TOPIC_PROPERTIES = {
    "eventTime": "event_time", "lateAfter": "late_after", "discardAfter": "discard_after",
    "futureTolerance": "future_tolerance", "uniqueWithin": "unique_within", "format": "format",
    "nullValues": "null_values", "keyFormat": "key_format", "changeData": "change_data",
}  # fmt: skip
"""Custom property -> what it is called in `Contract`."""
_CHOICES = {
    "format": FORMATS,
    "nullValues": NULL_VALUES,
    "keyFormat": KEY_FORMATS,
    "changeData": change_data.DATABASES,
}
_OPTIONS = {
    "string": {"minLength", "maxLength"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
}
_UNENFORCED = ("quality", "relationships", "encryptedName")


class _Strict(yaml.SafeLoader):
    """YAML in which a key given twice is an error, not the last one's silent victory."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.YAMLError(f"key {key.value!r} is given twice, line {key.start_mark.line + 1}")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


@cache
def _standard() -> Draft201909Validator:
    text = resources.files("open_data_contract_standard").joinpath("schema.json").read_text()
    return Draft201909Validator(json.loads(text))


def says_json(path: Path) -> bool:
    """Whether the file is the contract of a topic in JSON, whatever else may be wrong with it.

    Asked of every contract whenever topics are listed: only one that may say so is read as YAML, and once.
    """
    try:
        text = path.read_text()
    except (OSError, ValueError):
        return False  # who loads it says what is wrong
    return "format" in text and JSON in text and _says_json(text)


@lru_cache(maxsize=64)
def _says_json(text: str) -> bool:
    try:
        found = yaml.load(text, _Strict)["customProperties"]
        return any((one["property"], one["value"]) == ("format", JSON) for one in found)
    except (ValueError, yaml.YAMLError, LookupError, TypeError):
        return False  # no contract of a topic; who loads it says what is wrong


def load_contract(path: Path) -> Contract:
    """Read and validate one contract; anything wrong raises ContractError with file and path."""
    try:
        document = yaml.load(path.read_text(), _Strict)
    except FileNotFoundError as error:
        raise ContractError(
            path, "", "there is no such contract", "write it; each topic and table has one"
        ) from error
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ContractError(path, "", f"it cannot be read as YAML: {error}", "repair the file") from error
    return parse_contract(document, name=path.stem, file=str(path))


def parse_contract(document: Any, *, name: str, file: str) -> Contract:
    """The contract in a parsed YAML document."""
    errors = sorted(
        _standard().iter_errors(document), key=lambda error: (-len(error.absolute_path), error.message)
    )
    if errors:
        first = errors[0]
        _refuse_untyped(document, first.absolute_path, file)
        raise ContractError(
            file,
            _path(first.absolute_path),
            first.message,
            "see https://bitol-io.github.io/open-data-contract-standard",
        )
    for key in ("name", "schema", "description"):
        if not document.get(key):
            raise ContractError(file, key, "it is missing")
    if document["name"] != name:
        raise ContractError(file, "name", f"it is {document['name']!r}, but the file is named {name!r}")
    if not document["apiVersion"].startswith("v3."):
        raise ContractError(file, "apiVersion", "Twinlake reads version 3 of the standard only")
    if len(document["schema"]) != 1:
        raise ContractError(file, "schema", "it must describe exactly one object")
    object_ = document["schema"][0]
    if object_["name"] != name:
        raise ContractError(file, "schema[0].name", f"it is {object_['name']!r}, not {name!r}")
    if object_.get("quality"):
        raise ContractError(
            file, "schema[0].quality", "Twinlake does not enforce it", "write the rule at a property"
        )
    if not object_.get("properties"):
        raise ContractError(file, "schema[0].properties", "it is missing")
    columns, rules, unique = _properties(object_["properties"], file)
    custom = _custom(document.get("customProperties", []), file)
    if "change_data" in custom:
        custom = _of_changes(custom, columns, unique, file)
    contract = Contract(
        name=name, version=document["version"], file=file, columns=columns, rules=rules,
        unique=unique, **custom,
    )  # fmt: skip
    _refuse_inconsistent(contract, file)
    return contract


def _refuse_untyped(document: Any, path: Any, file: str) -> None:
    """Without logicalType the standard's schema asks for every type's options: say what is missing."""
    parts = list(path)
    if len(parts) >= 4 and parts[0] == "schema" and parts[2] == "properties":
        one = document["schema"][parts[1]]["properties"][parts[3]]
        if isinstance(one, dict) and "logicalType" not in one:
            raise ContractError(file, f"{_path(parts[:4])}.logicalType", "it is missing")


def _path(parts: Any) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _properties(found: list[Any], file: str) -> tuple[tuple[Column, ...], tuple[Rule, ...], str | None]:
    columns: list[Column] = []
    rules: list[Rule] = []
    unique: str | None = None
    for index, one in enumerate(found):
        path = f"schema[0].properties[{index}]"
        for key in _UNENFORCED:
            if key in one:
                raise ContractError(file, f"{path}.{key}", "Twinlake does not enforce it", "remove it")
        name = one["name"]
        if any(column.name.lower() == name.lower() for column in columns):
            raise ContractError(file, f"{path}.name", f"{name!r} is used twice (case is ignored)")
        kind, logical = column_type(one, file, path)
        columns.append(
            Column(
                name=name, type=kind, required=one.get("required", False), key=one.get("primaryKey", False)
            )
        )
        rules.extend(_rules(one, name, logical, file, path))
        if one.get("unique"):
            if is_nested(kind):
                raise ContractError(file, f"{path}.unique", f"{kind} is no id", "make a plain column unique")
            if unique is not None:
                raise ContractError(
                    file, f"{path}.unique", f"{unique!r} is unique already; one column can be"
                )
            unique = name
    return tuple(columns), tuple(rules), unique


def _rules(one: dict[str, Any], name: str, logical: str, file: str, path: str) -> list[Rule]:
    rules = [Rule(column=name, code=MISSING)] if one.get("required") else []
    options = one.get("logicalTypeOptions", {})
    for key, value in options.items():
        where = f"{path}.logicalTypeOptions.{key}"
        if key not in _OPTIONS.get(logical, set()):
            raise ContractError(file, where, f"Twinlake does not enforce it for {logical}", "remove it")
        if key == "minLength":
            if value != 1:
                raise ContractError(file, where, "only 1 (not empty) is enforced")
            rules.append(Rule(column=name, code=EMPTY))
        elif key == "maxLength":
            rules.append(Rule(column=name, code=TOO_LONG, value=int(value)))
        else:
            code = BELOW_MINIMUM if key == "minimum" else ABOVE_MAXIMUM
            rules.append(Rule(column=name, code=code, value=_number(value, file, where)))
    if "enum" in one:
        values = [entry["value"] for entry in one["enum"]]
        if logical != "string" or not all(isinstance(value, str) for value in values):
            raise ContractError(file, f"{path}.enum", "it is enforced for strings only")
        rules.append(Rule(column=name, code=NOT_ALLOWED, value=tuple(values)))
    return rules


def _number(value: Any, file: str, path: str) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation as error:
        raise ContractError(file, path, f"{value!r} is no number") from error
    if isinstance(value, bool) or not number.is_finite():
        raise ContractError(file, path, f"{value!r} is no finite number")
    return Decimal(f"{number:f}")


def _custom(found: list[Any], file: str) -> dict[str, Any]:
    custom: dict[str, str | timedelta] = {}
    fields = TOPIC_PROPERTIES
    for index, one in enumerate(found):
        path = f"customProperties[{index}]"
        key, value = one["property"], one["value"]
        if key not in fields:
            raise ContractError(
                file, f"{path}.property", f"unknown property {key!r}", f"known: {', '.join(TOPIC_PROPERTIES)}"
            )
        if fields[key] in custom:
            raise ContractError(file, f"{path}.property", f"{key!r} is given twice")
        if not isinstance(value, str):
            raise ContractError(file, f"{path}.value", "it must be text")
        if key in _CHOICES:
            if value not in _CHOICES[key]:
                known = ", ".join(_CHOICES[key])
                raise ContractError(file, f"{path}.value", f"{value!r} is no {key}", f"known: {known}")
            custom[fields[key]] = value
            continue
        try:
            custom[fields[key]] = value if key == "eventTime" else parse_duration(value)
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
    if found := change_data.misfit(columns, custom["change_data"]):
        raise ContractError(file, *found)
    # the key tells rows apart whose properties the contract does not name
    implied = {"event_time": change_data.EVENT_TIME, "null_values": IGNORE, "key_format": BYTES}
    return {**implied, **custom}


def _refuse_inconsistent(contract: Contract, file: str) -> None:
    times = {
        "lateAfter": contract.late_after, "discardAfter": contract.discard_after,
        "futureTolerance": contract.future_tolerance,
    }  # fmt: skip
    if contract.event_time is None:
        more = {"uniqueWithin": contract.unique_within, "keyFormat": contract.key_format}
        given = [key for key, value in {**times, **more}.items() if value]
        if contract.format != AVRO or contract.null_values != INVALID:
            given.append("format or nullValues")
        if given or contract.unique:
            what = ", ".join(given) or "unique"
            raise ContractError(file, "customProperties", f"eventTime is missing, but {what} is given")
        return
    column = contract.column(contract.event_time)
    timed = column is not None and column.type == "timestamp" and column.required
    if not timed and contract.change_data is None:
        raise ContractError(
            file, "customProperties", f"eventTime {contract.event_time!r} is no required timestamp"
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
