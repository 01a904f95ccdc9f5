"""Owns the reading of `contracts/*.yaml`: the standard's JSON Schema first, then our own rules."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft201909Validator

from twinlake.base.errors import ContractError
from twinlake.base.times import format_duration
from twinlake.topics import topic_properties
from twinlake.topics.contract import JSON, Column, Contract, Rule
from twinlake.topics.contract_column import column_type
from twinlake.topics.promises import NOTHING, Promise, read_promise
from twinlake.topics.short_contract import completed, is_short, without_types
from twinlake.topics.spark_type import is_nested
from twinlake.topics.verdict import ABOVE_MAXIMUM, BELOW_MINIMUM, EMPTY, MISSING, NOT_ALLOWED, TOO_LONG

OPTIONS: dict[str, set[str]] = {
    "string": {"minLength", "maxLength"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
}
"""By what a property is, the rules of `logicalTypeOptions` that are enforced."""
LONGEST = timedelta(days=365 * 1_000)
UNENFORCED = ("quality", "relationships", "encryptedName")
NEEDED = ("apiVersion", "kind", "id", "name", "version", "status", "description", "schema")
"""What each of our contracts has; the standard needs some of it."""


class _Strict(yaml.SafeLoader):
    """YAML in which a key given twice is an error, not the last one's silent victory."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            if key.value in seen:
                why = f"key {key.value!r} is given twice"
                raise yaml.MarkedYAMLError(problem=why, problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def standard() -> dict[str, Any]:
    """The standard's own JSON Schema, draft 2019-09."""
    text = resources.files("open_data_contract_standard").joinpath("schema.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def _standard() -> Draft201909Validator:
    return Draft201909Validator(standard())


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


def load_promise(path: Path) -> Promise:
    """What a contract promises of time; nothing where there is no file. ContractError as `load_contract`."""
    if not path.exists():
        return NOTHING
    load_contract(path)
    return _promised(path.read_text(), path)


@lru_cache(maxsize=256)
def _promised(text: str, path: Path) -> Promise:
    """Of one text once: whoever watches what is promised asks again and again."""
    return read_promise(yaml.load(text, _Strict), path)


def load_contract(path: Path) -> Contract:
    """Read and validate one contract; anything wrong raises ContractError with file and path."""
    try:
        return _loaded(path.read_text(), path)
    except FileNotFoundError as error:
        raise ContractError(
            path, "", "there is no such contract", "write it: `twinlake new topic`, docs/schemas.md"
        ) from error
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        why = f"it cannot be read as YAML: {getattr(error, 'problem', None) or error}"
        raise ContractError(path, "", why, "repair the file", _place(error)) from error


@lru_cache(maxsize=256)
def _loaded(text: str, path: Path) -> Contract:
    """Of one text once: to ask the standard's schema takes most of the time of a check."""
    return parse_contract(yaml.load(text, _Strict), name=path.stem, file=str(path))


def _place(error: Exception) -> tuple[int, int] | None:
    mark = getattr(error, "problem_mark", None)
    return mark and (mark.line + 1, mark.column + 1)


def parse_contract(document: Any, *, name: str, file: str) -> Contract:
    """The contract in a parsed YAML document. A table's may be short: `twinlake/topics/short_contract.py`."""
    untyped: frozenset[str] = frozenset()
    if short := is_short(document):
        document, untyped = completed(document, name)
    if isinstance(document, dict) and (absent := [key for key in NEEDED if not document.get(key)]):
        why = "it is missing" if len(absent) == 1 else "they are missing"
        raise ContractError(file, ", ".join(absent), why)
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
    if document["name"] != name:
        raise ContractError(file, "name", f"it is {document['name']!r}, but the file is named {name!r}")
    if not document["apiVersion"].startswith("v3."):
        raise ContractError(file, "apiVersion", "Twinlake reads version 3 of the standard only")
    if len(document["schema"]) != 1:
        raise ContractError(file, "schema", "it must describe exactly one object")
    object_ = document["schema"][0]
    if object_["name"] != name:
        raise ContractError(file, "schema[0].name", f"it is {object_['name']!r}, not {name!r}")
    if short and object_.get("physicalType") == "topic":  # it would pass for a table's that is not there
        why = "eventTime is missing, and schema[0].physicalType is topic"
        raise ContractError(file, "customProperties", why, "a topic's contract says it there")
    if object_.get("quality"):
        raise ContractError(
            file, "schema[0].quality", "Twinlake does not enforce it", "write the rule at a property"
        )
    if not object_.get("properties") and not short:
        raise ContractError(file, "schema[0].properties", "it is missing")
    columns, rules, unique = _properties(object_.get("properties") or [], file)
    columns = without_types(columns, untyped)
    custom = topic_properties.read(document.get("customProperties", []), columns, unique, file)
    contract = Contract(
        name=name, version=document["version"], file=file, columns=columns, rules=rules,
        unique=unique, **custom,
    )  # fmt: skip
    topic_properties.refuse_inconsistent(contract, file)
    return _with_retention(contract, document, file)


def _with_retention(contract: Contract, document: dict[str, Any], file: str) -> Contract:
    seconds, at = read_promise(document, file).retention_s, "slaProperties"
    if seconds is None:
        return contract
    if not contract.is_topic:
        raise ContractError(
            file, at, "retention is said in the contract of a table",
            'say how long it shows its windows in its definition: retention="400 days"',
        )  # fmt: skip
    try:
        retention = timedelta(seconds=seconds)
    except OverflowError:
        retention = LONGEST
    if retention >= LONGEST:
        return contract  # for ever
    within = contract.unique_within
    if within is not None and retention < within:
        raise ContractError(
            file, at, f"retention is shorter than uniqueWithin ({format_duration(within)})",
            "keep records as long as their ids are asked for, at least",
        )  # fmt: skip
    return replace(contract, retention=retention)


def _refuse_untyped(document: Any, path: Any, file: str) -> None:
    """Without logicalType the standard's schema asks for every type's options: say what is missing."""
    parts = list(path)
    if len(parts) >= 4 and parts[0] == "schema" and parts[2] == "properties":
        one = document["schema"][parts[1]]["properties"][parts[3]]
        if isinstance(one, dict) and "logicalType" not in one:
            raise ContractError(
                file, f"{_path(parts[:4])}.logicalType", "it is missing",
                "give both types; of a table's column, both may be left out",
            )  # fmt: skip


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
        for key in UNENFORCED:
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
                why = f"{kind} is not an id"
                raise ContractError(file, f"{path}.unique", why, "make a plain column unique")
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
        if key not in OPTIONS.get(logical, set()):
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
    bounds = {rule.code: rule.value for rule in rules}
    least, most = bounds.get(BELOW_MINIMUM), bounds.get(ABOVE_MAXIMUM)
    if isinstance(least, Decimal) and isinstance(most, Decimal) and least > most:
        why = f"no number is {least} or more and {most} or less"
        raise ContractError(file, f"{path}.logicalTypeOptions", why, "correct minimum or maximum")
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
        raise ContractError(file, path, f"{value!r} is not a number") from error
    if isinstance(value, bool) or not number.is_finite():
        raise ContractError(file, path, f"{value!r} is not a finite number")
    return Decimal(f"{number:f}")
