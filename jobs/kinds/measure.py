"""Owns the measures: each is three pieces of Spark SQL (state from rows, merge, value from state).

A state must be a function of the *set* of inputs, so that any cut of history gives the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from jobs import quote
from jobs.errors import UsageError

SKETCH_LOG_ENTRIES = 12
"""Theta sketches keep 2^12 entries: exact below 4,096 distinct values, about 3 % (two sigma) beyond."""

SAFE_DIGITS = 19
"""Values of so many digits cannot overflow decimal(38) in fewer than 10^19 rows."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One state column of a measure."""

    name: str
    from_rows: str
    """Aggregate SQL over the rows' columns."""
    merge: str
    """Aggregate SQL over the state columns."""


@dataclass(frozen=True)
class Measure:
    """What a measure is made of: `of` names a column of the row-local step."""

    kind: ClassVar[str] = ""
    of: str

    def parts(self, name: str, type_: str) -> tuple[Part, ...]:
        """State columns `<name>__<part>`; `type_` is the Spark type of column `of`."""
        raise NotImplementedError

    def value(self, name: str) -> str:
        """Aggregate SQL over state columns: what a reader sees."""
        raise NotImplementedError

    def evidence(self, name: str) -> tuple[str, ...]:
        """State columns that a comparison checks beside the value."""
        return ()

    def refuses(self, type_: str) -> str | None:
        """Why a column of that type cannot be measured, if so."""
        return None

    def to_json(self) -> dict[str, Any]:
        """Plain data; `measure_from_json` is its exact inverse."""
        return {"kind": self.kind, **{field.name: getattr(self, field.name) for field in fields(self)}}


def _is_decimal(type_: str) -> bool:
    return type_.startswith("decimal(") or type_ in ("tinyint", "smallint", "int", "bigint")


def _digits(type_: str) -> int:
    return int(type_[len("decimal(") :].split(",")[0]) if type_.startswith("decimal(") else 19


def _scale(type_: str) -> int:
    return int(type_.rstrip(")").split(",")[1]) if type_.startswith("decimal(") else 0


def _column(name: str, part: str) -> str:
    return quote.name(f"{name}__{part}")


@dataclass(frozen=True)
class Count(Measure):
    """Rows, or with a column its non-null values."""

    kind = "count"
    of: str | None = None  # type: ignore[assignment]

    def parts(self, name: str, type_: str) -> tuple[Part, ...]:
        counted = "1" if self.of is None else quote.name(self.of)
        return (Part(name=f"{name}__n", from_rows=f"count({counted})", merge=f"sum({_column(name, 'n')})"),)

    def value(self, name: str) -> str:
        return f"sum({_column(name, 'n')})"


class _Total(Measure):
    """State of Sum and Avg: the sum, the count of non-null values, and what decides on overflow.

    Overflow is decided by the sum of the positive and the sum of the negative values. Both only grow, so they
    overflow in every cut and order of the same rows or in none, and no signed sum can overflow before them.
    (The sum of `abs` would do, but Spark rounds `abs` and unary minus of a decimal to 34 digits.)
    """

    def refuses(self, type_: str) -> str | None:
        return None if _is_decimal(type_) or type_ in ("float", "double") else f"{type_} is no number"

    def parts(self, name: str, type_: str) -> tuple[Part, ...]:
        state = f"decimal(38,{_scale(type_)})" if _is_decimal(type_) else "double"
        column, zero = f"CAST({quote.name(self.of)} AS {state})", f"CAST(0 AS {state})"
        up, down = zero, zero
        if _is_decimal(type_) and _digits(type_) > SAFE_DIGITS:
            up, down = (
                f"try_sum(CASE WHEN {column} {sign} {zero} THEN {column} ELSE {zero} END)" for sign in "><"
            )
        over = f"({up} IS NULL OR {down} IS NULL)"
        past = self._overflow(name)
        parts = [
            Part(
                name=f"{name}__sum",
                from_rows=f"CASE WHEN NOT {over} THEN try_sum({column}) END",
                merge=f"CASE WHEN NOT {past} THEN try_sum({_column(name, 'sum')}) END",
            ),
            Part(
                name=f"{name}__n",
                from_rows=f"count({quote.name(self.of)})",
                merge=f"sum({_column(name, 'n')})",
            ),
            Part(name=f"{name}__overflow", from_rows=over, merge=past),
        ]
        for part, sql in (("up", up), ("down", down)):
            merge = f"CASE WHEN NOT {past} THEN try_sum({_column(name, part)}) END"
            parts.append(
                Part(name=f"{name}__{part}", from_rows=f"CASE WHEN NOT {over} THEN {sql} END", merge=merge)
            )
        if state == "double":
            size = f"coalesce(sum(abs({column})), {zero})"
            parts.append(Part(name=f"{name}__abs", from_rows=size, merge=f"sum({_column(name, 'abs')})"))
        return tuple(parts)

    def _overflow(self, name: str) -> str:
        sums = (f"try_sum({_column(name, part)}) IS NULL" for part in ("up", "down"))
        return f"(bool_or({_column(name, 'overflow')}) OR {' OR '.join(sums)})"

    def evidence(self, name: str) -> tuple[str, ...]:
        return (f"{name}__n", f"{name}__overflow")


@dataclass(frozen=True)
class Sum(_Total):
    """Exact sum as decimal(38, s), or double; NULL when there is nothing to sum, or on overflow."""

    kind = "sum"

    def value(self, name: str) -> str:
        return f"CASE WHEN NOT {self._overflow(name)} THEN try_sum({_column(name, 'sum')}) END"


@dataclass(frozen=True)
class Avg(_Total):
    """Mean of the non-null values: decimal(38, max(6, s)) rounded half up, or double."""

    kind = "avg"

    def value(self, name: str) -> str:
        mean = f"try_divide(try_sum({_column(name, 'sum')}), sum({_column(name, 'n')}))"
        return f"CASE WHEN NOT {self._overflow(name)} AND sum({_column(name, 'n')}) > 0 THEN {mean} END"


class _Extreme(Measure):
    function: ClassVar[str]

    def refuses(self, type_: str) -> str | None:
        return f"{type_} has no order" if type_.startswith(("map<", "variant")) else None

    def parts(self, name: str, type_: str) -> tuple[Part, ...]:
        part, column = f"{name}__{self.function}", quote.name(self.of)
        return (
            Part(
                name=part,
                from_rows=f"{self.function}({column})",
                merge=f"{self.function}({quote.name(part)})",
            ),
        )

    def value(self, name: str) -> str:
        return f"{self.function}({_column(name, self.function)})"


@dataclass(frozen=True)
class Min(_Extreme):
    """Smallest non-null value."""

    kind = "min"
    function = "min"


@dataclass(frozen=True)
class Max(_Extreme):
    """Greatest non-null value."""

    kind = "max"
    function = "max"


@dataclass(frozen=True)
class CountDistinct(Measure):
    """Distinct non-null values by a theta sketch: its bytes are the same in every cut of the rows."""

    kind = "count_distinct"

    def refuses(self, type_: str) -> str | None:
        known = ("int", "bigint", "float", "double", "string", "binary")
        return None if type_ in known else f"a sketch cannot take {type_}; cast it to string or bigint"

    def parts(self, name: str, type_: str) -> tuple[Part, ...]:
        size, column, value = SKETCH_LOG_ENTRIES, _column(name, "sketch"), quote.name(self.of)
        # a theta sketch leaves out empty strings without a word, so none may be empty
        if type_ == "string":
            value = f"concat('=', {value})"
        if type_ == "binary":
            value = f"concat(X'3D', {value})"
        return (
            Part(
                name=f"{name}__sketch",
                from_rows=f"theta_sketch_agg({value}, {size})",
                merge=f"theta_union_agg({column}, {size})",
            ),
        )

    def value(self, name: str) -> str:
        union = f"theta_union_agg({_column(name, 'sketch')}, {SKETCH_LOG_ENTRIES})"
        return f"theta_sketch_estimate({union})"

    def evidence(self, name: str) -> tuple[str, ...]:
        return (f"{name}__sketch",)


MEASURES: dict[str, type[Measure]] = {m.kind: m for m in (Count, Sum, Min, Max, Avg, CountDistinct)}


def measure_from_json(found: Mapping[str, Any]) -> Measure:
    """The measure that `to_json` came from; unknown kinds and keys are refused by name."""
    kind = MEASURES.get(str(found.get("kind")))
    if kind is None:
        raise UsageError(f"unknown measure kind {found.get('kind')!r}", "", f"known: {', '.join(MEASURES)}")
    known = {field.name for field in fields(kind)}
    for key in found:
        if key != "kind" and key not in known:
            raise UsageError(
                f"unknown key {key!r} in measure {kind.kind}", "", f"known: {', '.join(sorted(known))}"
            )
    return kind(**{key: value for key, value in found.items() if key != "kind"})
