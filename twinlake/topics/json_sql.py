"""Owns JSON as Spark SQL: whether a parsed document has a type's shape, where it has not, and its value.

A document is SQL of type variant. Nothing is read as what it is not: a number in quotes is text, a decimal
has no exponent (Spark would read it as a double), a moment is ISO 8601 with an offset. What a type does not
name is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from twinlake.base import quote
from twinlake.topics import verdict
from twinlake.topics.spark_type import NOTHING, Array, Map, Plain, Struct, Type

MOMENT = r"^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,6})?(Z|[+-]\\d{2}:\\d{2})\\z"
DAY = r"^\\d{4}-\\d{2}-\\d{2}\\z"
YEARS = {"date": (-719_162, 2_932_896), "timestamp": (-62_135_596_800_000_000, 253_402_300_799_999_999)}
"""The years 1 to 9999, in days and microseconds."""
_NUMBER = {"date": "unix_date", "timestamp": "unix_micros"}
_LONE_SURROGATE = (
    r"\\\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\\\u[dD][c-fC-F])"
    r"|(?<!\\\\u[dD][89abAB][0-9a-fA-F]{2})\\\\u[dD][c-fC-F]"
)


def has_half(text: str) -> str:
    """SQL: whether a document's text has half of a character, which no text can hold: Spark would show
    another one in its place. An escaped backslash begins no other escape."""
    unescaped = rf"replace({text}, '\\\\', '_')"
    return rf"(contains({text}, '\\u') AND {unescaped} RLIKE '{_LONE_SURROGATE}')"


def value(doc: str, type_: Type, depth: int = 0) -> str:
    """SQL of a document's value; NULL where it has none, or none of that type."""
    if isinstance(type_, Plain):
        text = _text(doc)
        if type_ == NOTHING:
            return "NULL"
        if type_.name == "string":
            return text
        return f"try_to_binary({text}, 'base64')" if type_.name == "binary" else _cast(text, type_)
    if isinstance(type_, Struct):
        parts = (
            f"{quote.string(name)}, {value(member(doc, name), inner, depth)}" for name, inner in type_.fields
        )
        made = f"named_struct({', '.join(parts)})"
        return f"CASE WHEN {doc} IS NOT NULL AND NOT is_variant_null({doc}) THEN {made} END"
    each = f"x{depth}"
    if isinstance(type_, Array):
        return f"transform({_items(doc)}, {each} -> {value(each, type_.element, depth + 1)})"
    return f"transform_values({_entries(doc)}, (k{depth}, {each}) -> {value(each, type_.value, depth + 1)})"


def member(doc: str, name: str) -> str:
    """SQL of the document below a name, NULL where there is none."""
    return f"try_variant_get({doc}, '$.{name}', 'variant')"


def type_errors(
    doc: str, type_: Type, path: str, closely: bool = False, depth: int = 0
) -> Iterator[tuple[str, str, str]]:
    """(reason code, path, SQL that is TRUE where it applies) for each way not to be of the type.

    Only `closely` a decimal of more than 38 digits is distinguished from what is not a number.
    """
    if isinstance(type_, Plain):
        yield from ((code, path, f"({wrong})") for code, wrong in _plain_doubts(doc, type_, closely))
        return
    sort = {Struct: "OBJECT", Array: "ARRAY", Map: "OBJECT"}[type(type_)]
    found = f"schema_of_variant({doc})"
    yield verdict.WRONG_TYPE, path, f"({found} NOT LIKE '{sort}%' AND {found} <> 'VOID')"
    if isinstance(type_, Struct):
        for name, inner in type_.fields:
            yield from type_errors(
                member(doc, name), inner, f"{path}.{name}" if path else name, closely, depth
            )
        return
    inner, values = (
        (type_.element, _items(doc)) if isinstance(type_, Array)
        else (type_.value, f"map_values({_entries(doc)})")
    )  # fmt: skip
    each = f"x{depth}"
    for code, where, wrong in type_errors(each, inner, f"{path}[]", closely, depth + 1):
        yield code, where, f"exists({values}, {each} -> {wrong})"


def _plain_doubts(doc: str, type_: Plain, closely: bool) -> Iterator[tuple[str, str]]:
    found, text, name = f"schema_of_variant({doc})", _text(doc), type_.name
    cast = _cast(text, type_)
    if name == "string":
        yield verdict.WRONG_TYPE, f"{found} NOT IN ('STRING', 'VOID')"
    elif name == "boolean":
        yield verdict.WRONG_TYPE, f"{found} NOT IN ('BOOLEAN', 'VOID')"
    elif name in ("int", "bigint"):
        yield (
            verdict.WRONG_TYPE,
            f"{found} NOT IN ('BIGINT', 'VOID') OR ({found} = 'BIGINT' AND {cast} IS NULL)",
        )
    elif type_.digits:
        precision, scale = type_.digits
        whole = f"(0|[0-9]{{1,{precision - scale}}})" if precision > scale else "0"
        digits = f"^-?{whole}" + (rf"(\\.[0-9]{{1,{scale}}})?$" if scale else "$")
        number = f"{found} NOT IN ('BIGINT', 'VOID') AND {found} NOT LIKE 'DECIMAL%'"
        beyond = f"({found} = 'BIGINT' OR {found} LIKE 'DECIMAL%') AND NOT {text} RLIKE '{digits}'"
        if closely:  # of more than 38 digits it is parsed as a double, as one with an exponent is
            many = f"({found} = 'DOUBLE' AND abs(try_cast({text} AS double)) >= 1e38D)"
            number, beyond = f"{number} AND NOT {many}", f"{many} OR ({beyond})"
        yield verdict.WRONG_TYPE, number
        yield verdict.DECIMAL_OUT_OF_RANGE, beyond
    elif name in ("float", "double"):
        number = f"{found} NOT IN ('BIGINT', 'DOUBLE', 'VOID') AND {found} NOT LIKE 'DECIMAL%'"
        yield verdict.WRONG_TYPE, f"({number}) OR abs({cast}) = CAST('Infinity' AS {name})"
    elif name in YEARS:
        pattern, (low, high) = (DAY if name == "date" else MOMENT), YEARS[name]
        written = f"{found} = 'STRING' AND {text} RLIKE '{pattern}' AND {cast} IS NOT NULL"
        yield verdict.WRONG_TYPE, f"{found} <> 'VOID' AND NOT ({written})"
        # Spark reads years of more digits, which no text here has
        yield verdict.TIME_OUT_OF_RANGE, f"{written} AND {_NUMBER[name]}({cast}) NOT BETWEEN {low} AND {high}"
    elif name == "binary":
        same = f"coalesce(base64(try_to_binary({text}, 'base64')) = {text}, false)"
        yield verdict.WRONG_TYPE, f"{found} <> 'VOID' AND NOT ({found} = 'STRING' AND {same})"
    else:
        raise ValueError(f"no JSON is read as {name}")


def _text(doc: str) -> str:
    return f"try_variant_get({doc}, '$', 'string')"


def _cast(text: str, type_: Plain) -> str:
    return f"try_cast({text} AS {type_.name})"


def _items(doc: str) -> str:
    return f"try_variant_get({doc}, '$', 'array<variant>')"


def _entries(doc: str) -> str:
    return f"try_variant_get({doc}, '$', 'map<string,variant>')"
