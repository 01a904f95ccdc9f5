"""Which fields of the log's `event` hold what producers send, and how the newest schema's are read from them.

A field keeps the type that it was first sent with. Where it comes with another one that holds the same
values, or whose values it holds, that has a field of its own beside it, `<name>:<type>`, which no producer's
field can be called: nothing that is there is rewritten, and nothing is converted before it is kept.
A record gains the fields that it comes with for the first time, which are NULL in the rows before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from twinlake.base import quote
from twinlake.topics.change import PROMOTIONS, holds, narrowed, promoted
from twinlake.topics.default_value import default_sql
from twinlake.topics.schema import Field
from twinlake.topics.spark_type import Struct, Type, covers, is_record, parse, text, united

_APART = ":"
_WIDER = {read for _, read in PROMOTIONS}
NOT_ASKED: Mapping[str, str] = {}


def base_name(kept: str) -> str:
    """What producers call the field that is kept under this name."""
    return kept.split(_APART)[0]


def kept_as(event: Mapping[str, str], name: str, type_: str) -> str | None:
    """The field of `event` (name to Spark type) that values of this name and type are in, if there is one:
    for a record, one that has all of its fields."""
    for known in (name, f"{name}{_APART}{type_}"):
        kept = event.get(known)
        if kept == type_ or (kept is not None and covers(parse(kept), parse(type_))):
            return known
    return None


def new_fields(event: Mapping[str, str], name: str, type_: str) -> dict[tuple[str, ...], str]:
    """What `event` must gain to keep this field: by the names on the way there, the types; ValueError where
    no place can be made."""
    same = next((known for known in event if known.lower() == name.lower()), None)
    if same is None:
        return {(name,): type_}
    if same != name:
        raise ValueError(f"its field {name!r} and {same!r}, which the log has, differ in case only")
    kept = parse(event[name])
    if isinstance(kept, Struct) and (both := united(kept, parse(type_))) is not None:
        return dict(_gained(kept, both, (name,)))
    if holds(event[name], type_) or holds(type_, event[name]):
        return {(f"{name}{_APART}{type_}",): type_}
    raise ValueError(
        f"its field {name!r} is {type_}, and the log has it as {event[same]}: a field keeps its type"
    )


def with_field(event: Mapping[str, str], name: str, type_: str) -> Mapping[str, str]:
    """`event` after it has gained what it lacks to keep this field; ValueError as of `new_fields`."""
    if kept_as(event, name, type_) is not None:
        return event
    grown = dict(event)
    for (first, *inside), new in new_fields(event, name, type_).items():
        both = united(parse(event[name]), parse(type_)) if inside else None
        grown[first] = new if both is None else text(both)
    return grown


def _gained(kept: Type, both: Type, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(kept, Struct) and isinstance(both, Struct):
        there = dict(kept.fields)
        for name, inner in both.fields:
            if name in there:
                yield from _gained(there[name], inner, (*path, name))
            else:
                yield (*path, name), text(inner)


def read_from(event: Mapping[str, str], fields: Sequence[Field]) -> dict[str, str]:
    """Those of `event` that these fields may be read from."""
    names = {name for field in fields for name in field.names}
    return {name: type_ for name, type_ in event.items() if base_name(name) in names}


def names_kept(event: Mapping[str, str], stored: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """A writer's fields, each as what it is called in `event`; `stored` has the types of those that are."""
    return [(name in stored and kept_as(event, name, stored[name])) or name for name in names]


def without(names: Iterable[str], left_out: Collection[str]) -> list[str]:
    """The names that a schema's records are kept under, but for these fields."""
    return [name for name in names if base_name(name) not in left_out]


def as_read(field: Field, schemas: Mapping[str, Sequence[str]], kept: Mapping[str, str] = NOT_ASKED) -> str:
    """SQL of a field over the log's columns: what the record's writer sent under one of its names, else the
    newest schema's default. `schemas` tells by id of the schemas met which fields their records are kept in,
    `kept` the types of all that the log keeps of the field.
    """
    by_source: dict[str, list[int]] = {}
    for schema_id, names in schemas.items():
        by_source.setdefault(_source(field, names, kept), []).append(int(schema_id))
    usual = _anywhere(field, kept)
    cases = [
        f"WHEN schema_id IN ({', '.join(map(str, sorted(ids)))}) THEN {sql}"
        for sql, ids in by_source.items()
        if sql != usual
    ]
    return f"CASE {' '.join(cases)} ELSE {usual} END" if cases else usual


def _anywhere(field: Field, kept: Mapping[str, str]) -> str:
    """The same of records whose schema is not among those met: JSON's, which name none, and those that come
    after a view was made. A record has its value in one of the field's places, and nothing in the others."""
    places = [place for name in field.names for place in kept if base_name(place) == name]
    texts = [_typed(field, place, kept) for place in places or (field.name,)]
    return texts[0] if len(texts) == 1 else f"coalesce({', '.join(texts)})"


def unfit(fields: Iterable[Field], names: Sequence[str], kept: Mapping[str, str]) -> str | None:
    """Why one of these fields cannot be read from records that are kept under these names of `kept`."""
    by_name = {base_name(name): name for name in names}
    for field in fields:
        found = next((by_name[name] for name in field.names if name in by_name), None)
        if found is None and not field.has_default:
            return f"its field {field.name!r} has no default, and these records have no such field"
        sent = kept.get(found or "")
        if sent is not None and not holds(sent, field.type):
            why = f"its field {field.name!r} is {field.type}, and the log has it as {sent}"
            return f"{why}: a field keeps its type"
    return None


def _source(field: Field, names: Sequence[str], kept: Mapping[str, str]) -> str:
    by_name = {base_name(name): name for name in names}
    found = next((by_name[name] for name in field.names if name in by_name), None)
    return default_sql(field) if found is None else _typed(field, found, kept)


def _typed(field: Field, name: str, kept: Mapping[str, str]) -> str:
    """Spark drops a cast that changes nothing: which type the log has it as need not be known, but for
    records, which are cast by place and read by name."""
    value, sent = f"event.{quote.name(name)}", kept.get(name, field.type)
    if (field.type, sent) in PROMOTIONS and (sent, field.type) not in PROMOTIONS:
        return narrowed(value, sent, field.type, field.name)  # read by an earlier schema
    if is_record(field.type) and name in kept:
        return promoted(value, kept[name], field.type)
    return f"CAST({value} AS {field.type})" if field.type in _WIDER else value
