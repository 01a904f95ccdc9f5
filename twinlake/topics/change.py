"""Owns which changes of a topic's schema its old records survive, and the words for those that they do not.

The same words wherever one is refused: in `twinlake check`, at registration, and when its records come.
"""

from __future__ import annotations

from collections.abc import Sequence

from twinlake.base import quote
from twinlake.topics.schema import Field, Schema
from twinlake.topics.spark_type import Struct, parse, text, united

PROMOTIONS = {
    ("int", "bigint"): "CAST({value} AS bigint)",
    ("int", "double"): "CAST({value} AS double)",
    ("float", "double"): "CAST({value} AS double)",
    ("string", "binary"): "CAST({value} AS binary)",
    ("binary", "string"): "CAST({value} AS string)",
}
"""(type sent, type read) -> SQL of the one from the other, which holds every value of the first exactly; but
for bytes that are no UTF-8, which ingest finds invalid from then on."""
REMEDY = (
    "give the new type a field of its own, a field that is new a default, and one that is renamed `aliases`; "
    "of Protobuf a new field a number of its own"
)
RELEASE_WIDER = "release a definition of it that is made with the newest schema"
"""What to do about a value that a version's own, narrower type does not hold."""


def breaking(before: Sequence[Field], after: Schema) -> tuple[str, str] | None:
    """(path in `after`, why) of its first field that records with the fields `before` cannot be read with."""
    if wrong := first_unreadable(before, after):
        index, key, why = wrong
        return after.place(index, key), why
    return None


def first_unreadable(before: Sequence[Field], after: Schema) -> tuple[int, str, str] | None:
    """The same: the field's place in `after`, which of its keys is wrong, and why."""
    for index, field in enumerate(after.fields):
        theirs = source(field, before)
        if why := renumbered(field, theirs, before):
            return index, "type", why
        if theirs is None:
            if not field.has_default:
                why = f"field {field.name!r} has no default, and records sent before have no such field"
                return index, "default", why
        elif not holds(theirs.type, field.type):
            why = f"field {field.name!r} is read as {field.type} and sent as {theirs.type}"
            rule = "a field keeps its type, or gets one that holds all of the old one's values"
            return index, "type", f"{why}: {rule}"
    return None


def renumbered(field: Field, theirs: Field | None, before: Sequence[Field]) -> str | None:
    """Why a field of Protobuf, which is known by its number, and the one that it would be read from are not
    the same one; None where they are, and of any other language."""
    if field.number is None:
        return None
    if theirs is None:
        same = next((one for one in before if one.number == field.number), None)
        return f"number {field.number} is {field.name!r} here and {same.name!r} there" if same else None
    if theirs.number != field.number:
        return f"field {field.name!r} has number {field.number} here and {theirs.number} there"
    for message, numbers in field.messages.items():
        then = theirs.messages.get(message, {})
        named = {number: name for name, number in then.items()}
        for name, number in numbers.items():
            if then.get(name, number) != number:
                return f"{message}.{name} has number {number} here and {then[name]} there"
            if named.get(number, name) != name:
                return f"number {number} of {message} is {name!r} here and {named[number]!r} there"
    return None


def source(field: Field, writer: Sequence[Field]) -> Field | None:
    """The writer's field that a field is read from: that of its name, else of the first of its aliases."""
    known = {theirs.name: theirs for theirs in writer}
    return next((known[name] for name in field.names if name in known), None)


def holds(sent: str, read: str) -> bool:
    """Whether every value of the type that was sent can be read as the other type.

    Records are read by the names of their fields: one that only the reader has is NULL, whatever its default,
    one that only the writer has is not shown, and one of both keeps its type.
    """
    return sent == read or (sent, read) in PROMOTIONS or united(parse(sent), parse(read)) is not None


def promoted(value: str, sent: str, read: str) -> str:
    """SQL of a value that was sent as one type and is read as another that `holds` it; `value` is a name."""
    if sent == read:
        return value
    if (sent, read) in PROMOTIONS:
        return PROMOTIONS[sent, read].format(value=value)
    theirs, ours = parse(sent), parse(read)
    assert isinstance(theirs, Struct) and isinstance(ours, Struct)  # nothing else holds another type's values
    return _by_name(value, theirs, ours)


def narrowed(value: str, sent: str, read: str, name: str) -> str:
    """SQL of a value that was sent as a wider type than it is read as: the same value, or an error that names
    the field; never another one."""
    kept = f"try_cast({value} AS {read})"
    why = quote.string(
        f"a value of field '{name}' does not fit into {read}, with which this version of the table was made, "
        f"and which is {sent} since: {RELEASE_WIDER}"
    )
    return (
        f"CASE WHEN {value} IS NULL OR CAST({kept} AS {sent}) <=> {value} THEN {kept} "
        f"ELSE CAST(raise_error({why}) AS {read}) END"
    )


def _by_name(value: str, sent: Struct, read: Struct) -> str:
    theirs, parts = dict(sent.fields), []
    for name, type_ in read.fields:
        inner, found = f"{value}.{quote.name(name)}", theirs.get(name)
        if found is None:
            inner = f"CAST(NULL AS {text(type_)})"
        elif isinstance(found, Struct) and isinstance(type_, Struct) and found != type_:
            inner = _by_name(inner, found, type_)
        parts.append(f"{quote.string(name)}, {inner}")
    return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
