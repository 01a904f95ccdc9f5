"""The family of arrays, maps and structs. DuckDB counts from 1, Spark's `[]` from 0, and raises."""

from __future__ import annotations

from sqlglot import exp

from twinlake.witness.rules.coercion import common, common_of, is_widened_exactly, to
from twinlake.witness.rules.logic import unified
from twinlake.witness.rules.term import Call, Function, Rule, Scope, Term, bind, cast, int_of
from twinlake.witness.types import (
    BIGINT,
    BOOLEAN,
    INTEGERS,
    SCALARS,
    STRING,
    UP_TO_INT,
    Type,
    array,
    identifier,
    struct,
    text_literal,
)

_BEYOND = "error('there is no such element')"


size = int_of(array="len", map="cardinality")
"""NULL of NULL."""


def array_of(call: Call) -> Term:
    if not call.terms:
        raise call.refused()
    terms = unified(call.node, call.scope, list(call.terms))
    type_ = array(terms[0].type)
    return Term(sql=cast(f"[{', '.join(term.sql for term in terms)}]", type_), type=type_)


def struct_of(call: Call) -> Term:
    """named_struct('name', value, ...)."""
    names = [call.string(index) for index in range(0, len(call.terms), 2)]
    values = call.terms[1::2]
    if not names or len(values) != len(names) or len({name.lower() for name in names}) != len(names):
        raise call.refused()
    fields = ", ".join(f"{identifier(name)} := {it.sql}" for name, it in zip(names, values, strict=True))
    type_ = struct(*((name, it.type) for name, it in zip(names, values, strict=True)))
    return Term(sql=f"struct_pack({fields})", type=type_)


def element(node: exp.Expression, scope: Scope) -> Term:
    """array[0], map['key'], struct['field']."""
    term = scope.term(node.this)
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        raise scope.refused(node, "this form of [] is not listed")
    index = scope.term(node.expressions[0])
    if term.type.name == "array" and index.type.name in UP_TO_INT:
        sql = bind([term, index], lambda it, at: _from_0(it, at, _BEYOND))
        return Term(sql=f"({sql})", type=term.type.element)
    if term.type.name == "map" and index.type == term.type.key and index.type.name in SCALARS:
        return Term(sql=f"({term.sql})[{index.sql}]", type=term.type.value)
    raise scope.refused(node, f"{term.type.spark}[{index.type.spark}] is not listed")


def _from_0(it: str, at: str, beyond: str) -> str:
    return _at(it, f"{at} < 0 OR {at} >= len({it})", f"CAST({at} AS BIGINT) + 1", beyond)


def _at(it: str, is_beyond: str, place: str, beyond: str) -> str:
    return f"CASE WHEN {it} IS NOT NULL AND ({is_beyond}) THEN {beyond} ELSE ({it})[{place}] END"


def element_at(call: Call) -> Term:
    """Counted from 1, or from the end; of a map NULL for another key."""
    call.takes(2)
    term, index = call.terms
    if term.type.name == "map" and index.type == term.type.key and index.type.name in SCALARS:
        return Term(sql=f"({term.sql})[{index.sql}]", type=term.type.value)
    if term.type.name != "array" or index.type.name not in UP_TO_INT:
        raise call.refused()
    beyond = _BEYOND if call.name == "element_at" else "NULL"
    sql = bind(
        [term, index],
        lambda it, at: (
            f"CASE WHEN {it} IS NOT NULL AND {at} = 0 THEN error('the first element is 1') ELSE "
            f"{_at(it, f'abs({at}) > len({it})', at, beyond)} END"
        ),
    )
    return Term(sql=f"({sql})", type=term.type.element)


def get(call: Call) -> Term:
    """Counted from 0, NULL beyond the end."""
    call.takes(2)
    term, index = call.terms
    if term.type.name != "array" or index.type.name not in UP_TO_INT:
        raise call.refused()
    sql = bind([term, index], lambda it, at: _from_0(it, at, "NULL"))
    return Term(sql=f"({sql})", type=term.type.element)


def _with_scalars(call: Call) -> Type:
    """The array's elements; Refused where they are no scalars."""
    if call.types[0] != "array" or call.terms[0].type.element.name not in SCALARS:
        raise call.refused()
    return call.terms[0].type.element


def _both(call: Call) -> tuple[Term, Term]:
    """An array and a value, in the elements' common type."""
    call.takes(2)
    elements, value = _with_scalars(call), call.terms[1]
    if value.type.name == "void":
        raise call.refused("Spark takes no NULL that is written out here")
    type_ = common(elements, value.type)
    if type_ is None or type_.name not in SCALARS or not is_widened_exactly(array(elements), array(type_)):
        raise call.refused()
    return to(call.terms[0], array(type_)), to(value, type_)


def contains(call: Call) -> Term:
    """NULL where it is not among the elements and one of them is NULL."""
    sql = bind(
        _both(call),
        lambda it, value: (
            f"CASE WHEN {it} IS NULL OR {value} IS NULL THEN NULL "
            f"WHEN list_contains({it}, {value}) THEN true "
            f"WHEN len(list_filter({it}, lambda _e: _e IS NULL)) > 0 THEN NULL ELSE false END"
        ),
    )
    return Term(sql=f"({sql})", type=BOOLEAN)


def position(call: Call) -> Term:
    """Counted from 1; 0 where it is not among the elements."""
    sql = bind(
        _both(call),
        lambda it, value: (
            f"CASE WHEN {it} IS NOT NULL AND {value} IS NOT NULL "
            f"THEN coalesce(list_position({it}, {value}), 0) END"
        ),
    )
    return Term(sql=cast(f"({sql})", BIGINT), type=BIGINT)


def extreme(call: Call) -> Term:
    """array_max and array_min pass over NULL."""
    call.takes(1)
    type_ = _with_scalars(call)
    name = {"array_max": "list_max", "array_min": "list_min"}[call.name]
    return Term(sql=f"{name}({call.terms[0].sql})", type=type_)


def sorted_(call: Call) -> Term:
    """sort_array: NULL first, or last in descending order. array_sort: NULL last."""
    call.takes(1, 2)
    _with_scalars(call)
    ascending = True
    if len(call.terms) == 2:
        written = call.node.expressions[1]
        if call.name == "array_sort" or not isinstance(written, exp.Boolean):
            raise call.refused()
        ascending = bool(written.this)
    order = "'ASC', 'NULLS FIRST'" if ascending else "'DESC', 'NULLS LAST'"
    if call.name == "array_sort":
        order = "'ASC', 'NULLS LAST'"
    return Term(sql=f"list_sort({call.terms[0].sql}, {order})", type=call.terms[0].type)


def joined(call: Call) -> Term:
    """array_join passes over NULL."""
    call.takes(2)
    if call.terms[0].type != array(STRING):
        raise call.refused()
    with_ = text_literal(call.string(1))
    sql = bind(
        call.terms[:1],
        lambda it: f"CASE WHEN {it} IS NOT NULL THEN coalesce(array_to_string({it}, {with_}), '') END",
    )
    return Term(sql=f"({sql})", type=STRING)


def sliced(call: Call) -> Term:
    """slice(array, start, length), both written out, the start counted from 1."""
    call.takes(3)
    start, count = call.number(1), call.number(2)
    if call.types[0] != "array" or start < 1 or count < 0:
        raise call.refused()
    sql = f"list_slice({call.terms[0].sql}, {start}, {start + count - 1})"
    return Term(sql=sql, type=call.terms[0].type)


def flattened(call: Call) -> Term:
    """NULL where one of the arrays is."""
    call.takes(1)
    type_ = call.terms[0].type
    if type_.name != "array" or type_.element.name != "array":
        raise call.refused()
    sql = bind(
        call.terms,
        lambda it: (
            f"CASE WHEN len(list_filter({it}, lambda _e: _e IS NULL)) > 0 THEN NULL ELSE flatten({it}) END"
        ),
    )
    return Term(sql=f"({sql})", type=type_.element)


def sequence(call: Call) -> Term:
    """Whole numbers from the first to the second, up or down by one."""
    call.takes(2)
    type_ = common_of(call.terms)
    if type_ is None or type_.name not in INTEGERS:
        raise call.refused()
    sql = bind(
        call.terms,
        lambda one, other: (
            f"CASE WHEN {one} IS NULL OR {other} IS NULL THEN NULL "
            f"ELSE generate_series({one}, {other}, CASE WHEN {one} <= {other} THEN 1 ELSE -1 END) END"
        ),
    )
    return Term(sql=cast(f"({sql})", array(type_)), type=array(type_))


def keys_or_values(call: Call) -> Term:
    call.takes(1)
    term = call.terms[0]
    if term.type.name != "map":
        raise call.refused()
    type_ = term.type.key if call.name == "map_keys" else term.type.value
    return Term(sql=f"{call.name}({term.sql})", type=array(type_))


def has_key(call: Call) -> Term:
    call.takes(2)
    term, key = call.terms
    if term.type.name != "map" or term.type.key != key.type or key.type.name not in SCALARS:
        raise call.refused()
    sql = bind(
        call.terms,
        lambda it, at: f"CASE WHEN {it} IS NOT NULL AND {at} IS NOT NULL THEN map_contains({it}, {at}) END",
    )
    return Term(sql=f"({sql})", type=BOOLEAN)


NODES: dict[type[exp.Expression], Rule] = {exp.Bracket: element}
FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(("size", "cardinality", "array_size"), size), "array": array_of,
    "named_struct": struct_of,
    "element_at": element_at, "try_element_at": element_at, "get": get, "array_contains": contains,
    "array_position": position, "array_max": extreme, "array_min": extreme, "sort_array": sorted_,
    "array_sort": sorted_, "array_join": joined, "slice": sliced, "flatten": flattened, "sequence": sequence,
    "map_keys": keys_or_values, "map_values": keys_or_values, "map_contains_key": has_key,
}  # fmt: skip
