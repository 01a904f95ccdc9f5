"""Owns the text of contracts that a person is to complete: a topic's, and a table's short one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import yaml

from twinlake.base.errors import visible
from twinlake.base.times import format_duration
from twinlake.topics.contract import AVRO, Column
from twinlake.topics.contract_column import LOGICAL
from twinlake.topics.formats import PROTOBUF
from twinlake.topics.spark_type import Array, Map, Plain, Type, parse


@dataclass(frozen=True, kw_only=True)
class TopicTerms:
    """What a topic's contract says."""

    name: str
    columns: tuple[Column, ...]
    format: str = AVRO
    event_time: str | None = None
    """None for change data, whose event time is the source's."""
    unique: str | None = None
    change_data: str | None = None
    late_after: timedelta = timedelta(minutes=10)
    discard_after: timedelta = timedelta(days=7)
    future_tolerance: timedelta = timedelta(minutes=5)
    remarks: tuple[str, ...] = ()
    """Lines of comment at the head of the file."""


class _Dumper(yaml.SafeDumper):
    """YAML as people write it: the items of a list stand further in than its name."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def topic_contract(terms: TopicTerms) -> str:
    """The contract of a topic as YAML."""
    custom = {
        **({} if terms.format == AVRO else {"format": terms.format}),
        **({"changeData": terms.change_data} if terms.change_data else {"eventTime": terms.event_time}),
        "lateAfter": format_duration(terms.late_after),
        **({} if terms.change_data else {"discardAfter": format_duration(terms.discard_after)}),
        "futureTolerance": format_duration(terms.future_tolerance),
        **({"uniqueWithin": "7 days" if terms.change_data else "1 hour"} if _is_identified(terms) else {}),
    }
    document = {
        "apiVersion": "v3.2.0", "kind": "DataContract", "id": terms.name, "name": terms.name,
        "version": "1.0.0", "status": "active", "description": {"purpose": ""},
        "customProperties": [{"property": name, "value": value} for name, value in custom.items()],
        "schema": [{
            "name": terms.name, "physicalType": "topic", "logicalType": "object",
            "properties": [
                property_of(one, is_unique=one.name == terms.unique, is_never_null=terms.format == PROTOBUF)
                for one in terms.columns
            ],
        }],
    }  # fmt: skip
    head = "".join(f"# {visible(line)}\n" for line in terms.remarks)
    return head + _yaml(document)


def table_contract(name: str, columns: Sequence[str], file: str) -> str:
    """The short contract of a table: places for what its definition does not say."""
    said = "".join(f"      - name: {_scalar(one)}\n        description: ''\n" for one in columns)
    return f"""\
# What {name} promises its readers. {file} says columns and types, so that they need not be
# said here. Rules may be, which the gate of each release checks, at a column: `required: true`,
# `logicalTypeOptions: {{minimum: 0}}` (or maximum, minLength, maxLength), `enum: [{{value: a}}]`.
name: {_scalar(name)}
description:
  purpose: ''       # what the table is for
team:
  name: ''          # who owns it
slaProperties:
  - property: latency   # how fresh it is, like value 1 and unit minutes
    value: ''
    unit: minutes
schema:
  - dataGranularityDescription: ''    # what one row is
    properties:
{said}"""


def _is_identified(terms: TopicTerms) -> bool:
    return terms.unique is not None or terms.change_data is not None


def property_of(column: Column, *, is_unique: bool, is_never_null: bool = False) -> dict[str, Any]:
    """A column as the contract has it. Where nothing is ever NULL, an id that was not sent is empty text."""
    rules: dict[str, Any] = {"required": True} if column.required else {}
    if is_unique:
        rules["unique"] = True
        if is_never_null and column.type == "string":
            rules["logicalTypeOptions"] = {"minLength": 1}
    return {"name": column.name, **_typed(parse(column.type), rules)}


def _typed(type_: Type, rules: dict[str, Any] | None = None) -> dict[str, Any]:
    """The keys of a property that say its type, its rules before what is inside."""
    rules = rules or {}
    if isinstance(type_, Plain):
        logical = "number" if type_.digits else LOGICAL[type_.name]
        return {"logicalType": logical, "physicalType": type_.name, **rules}
    if isinstance(type_, Array):
        return {"logicalType": "array", "physicalType": "array", **rules, "items": _typed(type_.element)}
    if isinstance(type_, Map):
        inside = {"key": _typed(Plain("string")), "value": _typed(type_.value)}
        return {"logicalType": "map", "physicalType": "map", **rules, "map": inside}
    inner = [{"name": name, **_typed(one)} for name, one in type_.fields]
    return {"logicalType": "object", "physicalType": "struct", **rules, "properties": inner}


def _yaml(document: Any) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def _scalar(text: str) -> str:
    """A name as YAML: `on` and the like have quotes."""
    return yaml.safe_dump(text, allow_unicode=True).splitlines()[0]
