"""Which fields of the log's `event` hold what producers send, and how the newest schema's are read from them.

A field keeps the type that it was first sent with. Where it comes with another one that holds the same
values, or whose values it holds, that has a field of its own beside it, `<name>:<type>`, which no producer's
field can be called: nothing that is there is written anew, and nothing is converted before it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jobs import quote
from jobs.topics.change import PROMOTIONS, holds
from jobs.topics.default_value import default_sql
from jobs.topics.schema import Field

_APART = ":"
_WIDER = {read for _, read in PROMOTIONS}


def kept_as(event: Mapping[str, str], name: str, type_: str) -> str | None:
    """The field of `event` (name to Spark type) that values of this name and type are in, if there is one."""
    return next((known for known in (name, f"{name}{_APART}{type_}") if event.get(known) == type_), None)


def new_field(event: Mapping[str, str], name: str, type_: str) -> str:
    """What a field that `event` has no place for is called there; ValueError where none can be made."""
    same = next((known for known in event if known.lower() == name.lower()), None)
    if same is None:
        return name
    if same != name:
        raise ValueError(f"its field {name!r} and {same!r}, which the log has, differ in case only")
    if holds(event[name], type_) or holds(type_, event[name]):
        return f"{name}{_APART}{type_}"
    raise ValueError(
        f"its field {name!r} is {type_}, and the log has it as {event[same]}: a field keeps its type"
    )


def read_from(event: Mapping[str, str], fields: Sequence[Field]) -> dict[str, str]:
    """Those of `event` that these fields may be read from."""
    names = {name for field in fields for name in field.names}
    return {name: type_ for name, type_ in event.items() if name.split(_APART)[0] in names}


def names_kept(event: Mapping[str, str], stored: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """A writer's fields, each as what it is called in `event`; `stored` has the types of those that are."""
    return [(name in stored and kept_as(event, name, stored[name])) or name for name in names]


def as_read(field: Field, schemas: Mapping[str, Sequence[str]]) -> str:
    """SQL of a field over the log's columns: what the record's writer sent under one of its names, else the
    newest schema's default. `schemas` tells by id of the schemas met which fields their records are kept in.
    """
    by_source: dict[str, list[int]] = {}
    for schema_id, names in schemas.items():
        by_source.setdefault(_source(field, names), []).append(int(schema_id))
    usual = _typed(field, field.name)
    cases = [
        f"WHEN schema_id IN ({', '.join(map(str, sorted(ids)))}) THEN {sql}"
        for sql, ids in by_source.items()
        if sql != usual
    ]
    return f"CASE {' '.join(cases)} ELSE {usual} END" if cases else usual


def _source(field: Field, kept: Sequence[str]) -> str:
    by_name = {name.split(_APART)[0]: name for name in kept}
    found = next((by_name[name] for name in field.names if name in by_name), None)
    return default_sql(field) if found is None else _typed(field, found)


def _typed(field: Field, kept: str) -> str:
    """Spark drops a cast that changes nothing: which type the log has it as need not be known."""
    value = f"event.{quote.name(kept)}"
    return f"CAST({value} AS {field.type})" if field.type in _WIDER else value
