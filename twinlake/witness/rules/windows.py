"""The family of functions over windows. Where ties leave open which row comes first, a guard raises."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from twinlake.witness.rules.coercion import common, is_widened_exactly, to
from twinlake.witness.rules.term import Call, Scope, Term, cast
from twinlake.witness.types import INT, SCALARS

_TIES = "rows that the window's order leaves equal"
RANKS = ("row_number", "rank", "dense_rank", "ntile")
SHIFTS = ("lag", "lead")
ENDS = ("first_value", "last_value")
_WHOLE_RANGES = {("UNBOUNDED", "CURRENT ROW"), ("UNBOUNDED", "UNBOUNDED"), ("CURRENT ROW", "UNBOUNDED")}


@dataclass(frozen=True, kw_only=True)
class Over:
    """A window: what follows OVER, and the condition under which another row is equal in its order."""

    sql: str
    has_ties: str
    is_ordered: bool
    by_rows: bool


def over(node: exp.Expression, scope: Scope) -> Over:
    """Refused for named windows and frames that are not listed."""
    if node.args.get("alias") or node.args.get("first") is not None:
        raise scope.refused(node, "a named window is not listed")
    partition = [scope.term(one).sql for one in node.args.get("partition_by") or ()]
    order = node.args.get("order")
    keys = [_key(one, scope) for one in order.expressions] if order else []
    spec = node.args.get("spec")
    frame = _frame(spec, node, scope) if spec else ""
    parts = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    if keys:
        parts.append("ORDER BY " + ", ".join(f"{sql} {direction}" for sql, direction in keys))
    groups = ", ".join([*partition, *(sql for sql, _ in keys)])
    ties = f"count(*) OVER ({f'PARTITION BY {groups}' if groups else ''}) > 1"
    by_rows = spec is not None and str(spec.args.get("kind")).upper() == "ROWS"
    return Over(
        sql=f" OVER ({' '.join([*parts, frame]).strip()})",
        has_ties=ties,
        is_ordered=bool(keys),
        by_rows=by_rows,
    )


def _key(node: exp.Expression, scope: Scope) -> tuple[str, str]:
    """Ascending Spark has NULL first, descending last, where nothing else is written."""
    term = scope.term(node.this)
    if term.type.name not in SCALARS or node.args.get("with_fill"):
        raise scope.refused(node, f"ordering by {term.type.spark} is not listed")
    direction = "DESC" if node.args.get("desc") else "ASC"
    return term.sql, f"{direction} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


def _frame(spec: exp.Expression, node: exp.Expression, scope: Scope) -> str:
    kind = str(spec.args.get("kind")).upper()
    start, end = _bound(spec, "start"), _bound(spec, "end")
    ends = (start.removesuffix(" PRECEDING"), end.removesuffix(" FOLLOWING"))
    if spec.args.get("exclude") or not start or not end or (kind == "RANGE" and ends not in _WHOLE_RANGES):
        raise scope.refused(node, "this frame of a window is not listed")
    return f"{kind} BETWEEN {start} AND {end}"


def _bound(spec: exp.Expression, name: str) -> str:
    value, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    if value is None:
        return "CURRENT ROW" if name == "end" else ""
    if isinstance(value, exp.Literal) and not value.is_string and value.name.isdecimal():
        return f"{value.name} {side}"
    text = str(value).upper()
    if text == "CURRENT ROW":
        return text
    return f"UNBOUNDED {side}" if text == "UNBOUNDED" else ""


def placed(call: Call, window: Over) -> Term:
    """row_number, rank, dense_rank, ntile: an int."""
    call.takes(1 if call.name == "ntile" else 0)
    if not window.is_ordered:
        raise call.refused("a window without an order leaves open which row comes first")
    inside = str(call.number(0)) if call.name == "ntile" else ""
    if inside and int(inside) < 1:
        raise call.refused("it takes 1 or more")
    sql = cast(f"{call.name}({inside}){window.sql}", INT)
    if call.name in ("row_number", "ntile"):
        sql = f"({call.guarded(window.has_ties, sql, _TIES)})"
    return Term(sql=sql, type=INT)


def shifted(call: Call, window: Over) -> Term:
    """lag and lead, by a number that is written out."""
    call.takes(1, 2, 3)
    if not window.is_ordered:
        raise call.refused("a window without an order leaves open which row comes first")
    term, by = call.terms[0], call.number(1) if len(call.terms) > 1 else 1
    otherwise = call.terms[2] if len(call.terms) == 3 else None
    type_ = term.type if otherwise is None else common(term.type, otherwise.type)
    if by < 0 or type_ != term.type or not is_widened_exactly(term.type, type_):
        raise call.refused()
    rest = f", {to(otherwise, type_).sql}" if otherwise is not None else ""
    sql = f"{call.name}({term.sql}, {by}{rest}){window.sql}"
    return Term(sql=f"({call.guarded(window.has_ties, sql, _TIES)})", type=type_)


def at_the_end(call: Call, window: Over) -> Term:
    """first_value and last_value."""
    call.takes(1)
    if not window.is_ordered:
        raise call.refused("a window without an order leaves open which row comes first")
    sql = f"{call.name}({call.terms[0].sql}){window.sql}"
    return Term(sql=f"({call.guarded(window.has_ties, sql, _TIES)})", type=call.terms[0].type)


def ties_guarded(call: Call, term: Term, window: Over) -> Term:
    """An aggregate over a frame of rows: which rows are in it follows their order."""
    if not window.by_rows:
        return term
    return Term(sql=f"({call.guarded(window.has_ties, term.sql, _TIES)})", type=term.type)
