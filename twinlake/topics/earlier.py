"""A topic as a version reads it that was made with an earlier schema: its names and types, over all records.

A field and its aliases are one field. One that was dropped since has its default in new records, else NULL.
A topic in JSON has no schema files: such a version knows the fields themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from twinlake.topics.contract import JSON, Contract
from twinlake.topics.schema import Field, Schema
from twinlake.topics.topic import Topic

MadeWith = int | Mapping[str, str]
"""What a version is made with: the number of a schema, of JSON the fields and their types."""


def made_with(topic: Topic) -> MadeWith:
    """What a version is made with that is made now."""
    if topic.contract.format == JSON:
        return {field.name: field.type for field in topic.newest.fields}
    return topic.newest.number


def as_of_schema(topic: Topic, made_with: MadeWith | None) -> Topic:
    """The topic read by that schema; as it is for None and for the newest."""
    if isinstance(made_with, Mapping):
        return _as_of_fields(topic, made_with)
    number = made_with
    if number is None or number >= topic.newest.number or topic.contract.format == JSON:
        return topic
    then, later = topic.schemas[number - 1], topic.schemas[number:]
    fields, names = [], dict[str, str]()
    for field in then.fields:
        known = _names(field, later)
        names.update(dict.fromkeys(known, field.name))
        aliases = tuple(name for name in known if name != field.name)
        fields.append(replace(field, aliases=aliases, has_default=True, nullable=True))
    schema = replace(then, fields=tuple(fields))
    contract = _renamed(topic.contract, names)
    return Topic(name=topic.name, contract=contract, schemas=(*topic.schemas[: number - 1], schema))


def _as_of_fields(topic: Topic, types: Mapping[str, str]) -> Topic:
    if topic.contract.format != JSON or types == made_with(topic):
        return topic
    fields = tuple(
        Field(name=name, avro=type_, type=type_, nullable=True, has_default=True)
        for name, type_ in types.items()
    )
    return replace(topic, schemas=(replace(topic.newest, fields=fields),))


def _names(field: Field, later: Sequence[Schema]) -> tuple[str, ...]:
    """What the field is called now and was before, the newest name first."""
    names = field.names
    for schema in later:
        for one in schema.fields:
            if set(one.names) & set(names):
                names = tuple(dict.fromkeys((*one.names, *names)))
    return names


def _renamed(contract: Contract, names: dict[str, str]) -> Contract:
    """The contract of today, in the names of then; `names` has each field of then, by all of its names."""
    columns = tuple(replace(one, name=names.get(one.name, one.name)) for one in contract.columns)
    time = contract.event_time and names.get(contract.event_time, contract.event_time)
    unique = contract.unique and names.get(contract.unique)  # None: the id was no field then
    return replace(contract, columns=columns, event_time=time, unique=unique)
