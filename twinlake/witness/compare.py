"""Owns the comparison of what the witness has found with what a version shows; nothing else compares with it.

Rows meet by the view's key. Where a key has several rows, as only a wrong definition has, they meet in the
order of their exact columns, then of their doubles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinlake.witness.answer import DIFFERS, EQUAL, LONGEST, MOST, NOT_WITNESSED, Behind, Compared, Difference
from twinlake.witness.behind import NTH, behind, ends
from twinlake.witness.database import Database, Types
from twinlake.witness.result import EXACTLY, Result, Shown
from twinlake.witness.text import names, same_keys
from twinlake.witness.types import TIMESTAMP, Type, identifier

WITNESS, SHOWN = "_witness", "_shown"
_BOTH = "w._is AND s._is"


@dataclass(frozen=True)
class Outcome:
    """What was found of the rows, of what follows the clocks, and how often a bound was needed."""

    rows: Compared
    by_clocks: Compared | None
    within_bound: dict[str, int]


def compare(database: Database, result: Result, shown: str, types: Types, name: str = "") -> Outcome:
    """`shown` is the relation of the version's rows, with its columns' types; `name` tells two comparisons of
    one database apart."""
    if why := _unlike(result, types):
        return Outcome(Compared(verdict=NOT_WITNESSED, why=why), None, {})
    make = database.table if result.is_whole else database.view
    sides = (f"{WITNESS}{name}", f"{SHOWN}{name}")
    make(sides[0], result.sql)
    database.view(sides[1], f"SELECT * FROM {shown}")
    return _Comparison(database, result, sides).outcome()


def _unlike(result: Result, types: Types) -> str:
    """Why the columns cannot be compared: with other types they may be rounded, or mean something else."""
    for name, column in {**result.columns, **result.by_clocks}.items():
        if name not in types:
            return f"column {name} is not shown"
        if types[name].duckdb != column.type.duckdb:
            return f"column {name} ({types[name].spark} in Spark, {column.type.spark} by the witness)"
    if unknown := types.keys() - result.columns.keys() - result.by_clocks.keys():
        return f"column {min(unknown)} is not known to the witness"
    return ""


class _Comparison:
    """Both relations, and how their rows meet."""

    def __init__(self, database: Database, result: Result, sides: tuple[str, str]) -> None:
        self._database, self._result = database, result
        self._columns = {name: one for name, one in result.columns.items() if name not in result.keys}
        self._sides, self._on = sides, result.keys
        self._listings = 0

    def outcome(self) -> Outcome:
        counted = self._counted()
        is_unsure = False
        if self._has_doubled(counted):
            # the order of doubles that are equal within their bound says nothing of what belongs together
            inexact = [name for name, one in self._columns.items() if not one.rule.is_exact]
            is_unsure = len(inexact) > 1
            self._number()
            counted = self._counted()
        both, only_witness, only_shown, changed, changed_by_clocks, surely = counted[:6]
        differing = only_witness + only_shown + changed
        why = ""
        if differing and is_unsure:
            why = "several rows have one key, and more than one double: which belong together is not known"
        elif differing and not (only_witness or only_shown or surely):
            names_ = ", ".join(
                name for name, one in self._columns.items() if one.rule.surely != EXACTLY.surely
            )
            why = f"{names_} (sums of doubles differ, and may by the order in which they are added up)"
        if why:
            return Outcome(Compared(verdict=NOT_WITNESSED, why=why), None, {})
        rows = self._compared(both + only_witness + only_shown, differing, self._columns, alone=True)
        clocks = None
        if self._result.by_clocks:
            clocks = self._compared(both, changed_by_clocks, self._result.by_clocks, alone=False)
        near = dict(zip(self._bounded, counted[6:], strict=True))
        return Outcome(rows, clocks, near)

    @property
    def _bounded(self) -> list[str]:
        return [name for name, one in self._columns.items() if one.rule.bound]

    def _counted(self) -> tuple[int, ...]:
        """Rows of both sides, of the witness alone, shown alone; changed ones; the same of what follows the
        clocks, and of columns that are sure; of each bounded one the values that are near and not exact."""
        sure = [one.rule.differs_surely(name, "w", "s") for name, one in self._columns.items()]
        near = [
            f"{_BOTH} AND {self._same({name: self._columns[name]})}"
            f" AND w.{identifier(name)} IS DISTINCT FROM s.{identifier(name)}"
            for name in self._bounded
        ]
        changed = [
            f"{_BOTH} AND NOT {self._same(columns)}" for columns in (self._columns, self._result.by_clocks)
        ]
        changed.append(f"{_BOTH} AND ({' OR '.join(sure) or 'false'})")
        conditions = [_BOTH, "s._is IS NULL", "w._is IS NULL", *changed, *near]
        counts = ", ".join(f"count(*) FILTER (WHERE {one})" for one in conditions)
        return self._database.one(f"SELECT {counts} FROM {self._joined}")

    @property
    def _joined(self) -> str:
        sides = (f"(SELECT *, true AS _is FROM {identifier(name)})" for name in self._sides)
        left, right = sides
        return f"{left} AS w FULL OUTER JOIN {right} AS s ON {same_keys(self._on, 'w', 's')}"

    def _same(self, columns: Mapping[str, Shown]) -> str:
        return f"({' AND '.join(one.rule.sql(name, 'w', 's') for name, one in columns.items()) or 'true'})"

    def _has_doubled(self, counted: Sequence[int]) -> bool:
        """A key with rows of both sides and several on one of them has more pairs than that side has rows."""
        sizes = [self._database.one(f"SELECT count(*) FROM {identifier(name)}")[0] for name in self._sides]
        return [counted[0] + counted[1], counted[0] + counted[2]] != sizes

    def _number(self) -> None:
        """The rows of each key get numbers, by which they meet."""
        exact = [name for name, one in self._columns.items() if one.rule.is_exact]
        others = [name for name in self._columns if name not in exact]
        order = names([*exact, *others]) or "1"
        sides = []
        for name in self._sides:
            number = f"row_number() OVER (PARTITION BY {names(self._on)} ORDER BY {order}) AS {NTH}"
            self._database.view(f"{name}_numbered", f"SELECT *, {number} FROM {identifier(name)}")
            sides.append(f"{name}_numbered")
        self._sides, self._on = (sides[0], sides[1]), (*self._on, NTH)

    def _compared(self, rows: int, differing: int, columns: Mapping[str, Shown], *, alone: bool) -> Compared:
        if not differing:
            return Compared(verdict=EQUAL, rows=rows)
        return Compared(
            verdict=DIFFERS, rows=rows, differing=differing, differences=self._differences(columns, alone)
        )

    def _differences(self, columns: Mapping[str, Shown], alone: bool) -> tuple[Difference, ...]:
        """The first rows that differ in these columns, or that one side lacks where that counts."""
        keys = self._result.keys
        both = {name: f"coalesce(w.{identifier(name)}, s.{identifier(name)})" for name in keys}
        key = ", ".join(
            f"left({_key_text(sql, self._result.columns[name].type)}, {LONGEST}) AS k{number}"
            for number, (name, sql) in enumerate(both.items())
        )
        values = ", ".join(
            f"left(CAST({side}.{identifier(name)} AS VARCHAR), {LONGEST}) AS {side}{number}"
            for number, name in enumerate(columns)
            for side in "ws"
        )
        same = ", ".join(
            f"CAST({one.rule.sql(name, 'w', 's')} AS VARCHAR) AS e{number}"
            for number, (name, one) in enumerate(columns.items())
        )
        missing = "s._is IS NULL OR w._is IS NULL OR " if alone else f"{_BOTH} AND "
        order = ", ".join(f"{sql} NULLS FIRST" for sql in both.values()) or "1"
        shown = ", ".join(part for part in (key, values, same) if part)
        differing = f" FROM {self._joined} WHERE {missing}NOT {self._same(columns)} ORDER BY {order}"
        found = self._database.run(
            f"SELECT coalesce({_BOTH}, false), coalesce(w._is, false), {shown}{differing} LIMIT {MOST}"
        )
        records = self._behind(both, order, f"{differing} LIMIT {MOST}", len(found))
        return tuple(
            _difference(keys, tuple(columns), row, one) for row, one in zip(found, records, strict=True)
        )

    def _behind(self, keys: Mapping[str, str], order: str, differing: str, count: int) -> tuple[Behind, ...]:
        """The records behind each of the rows that are shown: rows of one key have the same ones."""
        until = {name: f"greatest(w.{identifier(name)}, s.{identifier(name)})" for name in ends(self._result)}
        columns = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in {**keys, **until}.items())
        number = f"row_number() OVER (ORDER BY {order}) AS {NTH}"
        self._listings += 1
        table = self._database.table(
            f"{self._sides[0]}_differing_{self._listings}",
            f"SELECT {', '.join(part for part in (number, columns) if part)}{differing}",
        )
        return behind(self._database, self._result, table, count)


def _key_text(sql: str, type_: Type) -> str:
    """As `twinlake explain --key` reads it."""
    text = f"CAST({sql} AS VARCHAR)"
    return f"replace({text}, ' ', 'T') || 'Z'" if type_ == TIMESTAMP else text


def _difference(
    keys: Sequence[str], columns: Sequence[str], row: tuple[bool | str | None, ...], records: Behind
) -> Difference:
    is_both, is_witness, *texts = row
    values = texts[len(keys) :]
    witness, shown = values[: 2 * len(columns) : 2], values[1 : 2 * len(columns) : 2]
    same = values[2 * len(columns) :]
    return Difference(
        key=dict(zip(keys, texts, strict=False)),  # type: ignore[arg-type]
        columns=tuple(name for name, one in zip(columns, same, strict=True) if is_both and one != "true"),
        witness=dict(zip(columns, witness, strict=True)) if is_both or is_witness else None,  # type: ignore[arg-type]
        shown=dict(zip(columns, shown, strict=True)) if is_both or not is_witness else None,  # type: ignore[arg-type]
        behind=records,
    )
