"""Owns what each measure is over all rows of a group at once (docs/measures.md), and how it is compared."""

from __future__ import annotations

from collections.abc import Callable

from twinlake.witness.histogram import histogram
from twinlake.witness.measured import Items, Measured, Spec
from twinlake.witness.refused import Refused
from twinlake.witness.result import EXACTLY, Rule
from twinlake.witness.spread import deviation, variance
from twinlake.witness.text import RECORD_NUMBER, nulls_first, order_key
from twinlake.witness.totals import average, total
from twinlake.witness.types import BIGINT, BOOLEAN, DOUBLE, Type, array, decimal, identifier, struct

SKETCHED_FROM = 4_096
"""So many distinct values are counted by a sketch; fewer exactly."""
_NEAR_ZERO = 1e-320
"""Below it doubles have no digits in which 1 % would show."""
_NEAR_GREATEST = 1.77e308
"""From here on the middle of a bucket may be beyond the doubles."""


def measured(spec: Spec) -> Measured:
    """The measure; Refused for one that nobody has stated here."""
    make = MEASURES.get(str(spec.data.get("kind")))
    if make is None:
        raise Refused(f"measure {spec.data.get('kind')}", "the witness does not know this measure")
    return make(spec)


def _plain(spec: Spec, aggregate: str, type_: Type, *, rule: Rule = EXACTLY) -> Measured:
    return Measured(type=type_, parts={spec.part("all"): aggregate}, value=spec.part("all"), rule=rule)


def _count(spec: Spec) -> Measured:
    return _plain(spec, "count(*)" if spec.data.get("of") is None else f"count({spec.of})", BIGINT)


def _extreme(function: str) -> Callable[[Spec], Measured]:
    def make(spec: Spec) -> Measured:
        if not spec.type.is_nested:
            return _plain(spec, f"{function}({spec.of})", spec.type)
        picked = f"arg_{function}(struct_pack(v := {spec.of}), {order_key(spec.of, spec.type)})"
        picked = f"{picked} FILTER (WHERE {spec.of} IS NOT NULL)"
        return Measured(type=spec.type, parts={spec.part("all"): picked}, value=f"{spec.part('all')}.v")

    return make


def _pick(function: str) -> Callable[[Spec], Measured]:
    """The value of the row with the smallest or greatest (`by`, record id), then of the value itself."""

    def make(spec: Spec) -> Measured:
        order, where = [RECORD_NUMBER], ""
        if by := spec.data.get("by"):
            order.insert(0, order_key(identifier(by), spec.types[by]))
            where = f" FILTER (WHERE {identifier(by)} IS NOT NULL)"
        if spec.is_exploded:
            order.append(nulls_first(spec.of, spec.type))
        named = ", ".join(f"k{number} := {sql}" for number, sql in enumerate(order))
        key = order[0] if len(order) == 1 else f"struct_pack({named})"
        picked = f"arg_{function}(struct_pack(v := {spec.of}), {key}){where}"
        return Measured(type=spec.type, parts={spec.part("all"): picked}, value=f"{spec.part('all')}.v")

    return make


def _count_distinct(spec: Spec) -> Measured:
    rule = EXACTLY
    if not spec.data.get("exact"):
        near = "abs({s} - {w}) <= 0.094 * {w}"
        same = f"coalesce(CASE WHEN {{w}} < {SKETCHED_FROM} THEN {{s}} = {{w}} ELSE {near} END, false)"
        rule = Rule(same, bound=f"exact below {SKETCHED_FROM:,}, else within 9.4 %")
    return _plain(spec, f"count(DISTINCT {spec.of})", BIGINT, rule=rule)


def _quantile(spec: Spec) -> Measured:
    """Between the two values around the place (n - 1) q, in a straight line; each may be 1 % off."""
    q, held = spec.data["q"], spec.part("held")
    asked = q if isinstance(q, list) else [q]
    exact, slack = zip(*(_at(held, float(one)) for one in asked), strict=True)
    is_list = isinstance(q, list)
    near = []
    for number in range(1, len(asked) + 1):
        at = f"[{number}]" if is_list else ""
        near.append(_near(f"{{w}}{at}", f"{{s}}{at}", f"{{slack}}[{number}]"))
    same = f"{{w}} IS NOT DISTINCT FROM {{s}} OR coalesce({' AND '.join(near)}, false)"
    shown = f"[{', '.join(exact)}]" if is_list else exact[0]
    value = f"CASE WHEN {held} IS NOT NULL THEN {shown} END"
    return Measured(
        type=array(DOUBLE) if is_list else DOUBLE,
        parts={held: f"list_sort(list(CAST({spec.of} AS DOUBLE)) FILTER (WHERE {spec.of} IS NOT NULL))"},
        value=value,
        rule=Rule(same, beside=("slack",), bound="within 1 %"),
        beside={spec.part("slack"): f"[{', '.join(slack)}]"},
    )


def _at(held: str, q: float) -> tuple[str, str]:
    """The quantile, and how far off it may be shown."""
    place = f"((len({held}) - 1) * CAST({q!r} AS DOUBLE))"
    low, high = (f"{held}[CAST({way}({place}) AS BIGINT) + 1]" for way in ("floor", "ceil"))
    share = f"({place} - floor({place}))"
    exact = (
        f"CASE WHEN {share} = 0 OR {low} = {high} THEN {low}"
        f" ELSE (ceil({place}) - {place}) * {low} + {share} * {high} END"
    )
    slack = f"1.0000001e-2 * ((1 - {share}) * abs({low}) + {share} * abs({high})) + {_NEAR_ZERO}"
    return exact, slack


def _near(witness: str, shown: str, slack: str) -> str:
    return (
        f"({witness} IS NOT DISTINCT FROM {shown}"
        f" OR isfinite({witness}) AND isfinite({shown}) AND abs({shown} - {witness}) <= {slack}"
        f" OR isinf({shown}) AND isfinite({witness}) AND abs({witness}) > {_NEAR_GREATEST}"
        f" AND ({shown} > 0) = ({witness} > 0))"
    )


def _top(spec: Spec) -> Measured:
    weight, size, type_ = "count(*)", "count", BIGINT
    if by := spec.data.get("by"):
        of, size = spec.types[by], "weight"
        type_ = decimal(38, of.scale if of.name == "decimal" else 0)
        if not (of.is_integer or of.name == "decimal"):
            raise Refused(f"measure {spec.name}", f"a weight of {of.spark}")
        weight = f"CAST(sum({identifier(by)}) AS {type_.duckdb})"
    listed = (
        f"list(struct_pack(item := _item, {identifier(size)} := _weight) ORDER BY _weight DESC, _item)"
        f"[1:{int(spec.data['most'])}]"
    )
    shown = array(struct(("item", spec.type), (size, type_)))
    return Measured(
        type=shown, parts={}, value=f"coalesce({spec.part('items')}, CAST([] AS {shown.duckdb}))",
        items=Items(item=spec.of, weight=weight, listed=listed),
    )  # fmt: skip


def _collect_set(spec: Spec) -> Measured:
    held, most = spec.part("held"), int(spec.data["most"])
    keyed, shown = spec.of, f"{held}[1:{most}]"
    if spec.type.is_nested:
        keyed = f"struct_pack(k := {order_key(spec.of, spec.type)}, v := {spec.of})"
        shown = f"list_transform({shown}, lambda e: e.v)"
    items = f"list_sort(list(DISTINCT {keyed}) FILTER (WHERE {spec.of} IS NOT NULL))"
    none = f"CAST([] AS {spec.type.duckdb}[])"
    value = f"struct_pack(items := coalesce({shown}, {none}), more := coalesce(len({held}) > {most}, false))"
    return Measured(
        type=struct(("items", array(spec.type)), ("more", BOOLEAN)), parts={held: items}, value=value
    )


MEASURES: dict[str, Callable[[Spec], Measured]] = {
    "count": _count,
    "sum": total,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "avg": average,
    "variance": variance,
    "stddev": deviation,
    "first": _pick("min"),
    "last": _pick("max"),
    "arg_min": _pick("min"),
    "arg_max": _pick("max"),
    "count_distinct": _count_distinct,
    "quantile": _quantile,
    "histogram": histogram,
    "top_k": _top,
    "collect_set": _collect_set,
}
"""By the name in JSON."""
