"""Derived: one SELECT over the views of other tables, those of exactly the release that it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.kinds.analysis import nothing
from twinlake.kinds.definition import Definition, read, texts
from twinlake.kinds.equality import has_order, is_comparable, scale_of
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.lineage import behind_sql, same
from twinlake.kinds.query import refused_plan, refused_text
from twinlake.kinds.row_local import first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.base.errors import DefinitionError
    from twinlake.kinds.expression import Stage


@dataclass(frozen=True, kw_only=True)
class Derived(Definition):
    """A view kind over tables: `sql` names them as they stand in `reads`, and nothing else.

    Joins, aggregates, windows and subqueries are allowed. An order that decides (LIMIT, row_number) must end
    in a key. A double of it compares within 1e-9 of its own size: where large doubles cancel, use decimals.
    """

    kind = "derived"
    inputs: tuple[str, ...] = ()
    """Stays empty: it reads tables. For a topic's rows read an `Events` table of it."""
    reads: tuple[str, ...] = ()
    """The tables that `sql` names, as they are called."""
    columns: tuple[str, ...]
    """The columns of the SELECT, in order; their types are what Spark makes of it."""
    keys: tuple[str, ...]
    """Columns that identify a row; at least one."""
    by: tuple[str, ...]
    """Columns of it such that its rows depend only on rows of `reads` with equal values; may be empty."""
    sql: str
    """One SELECT of Spark SQL over the views of `reads`."""
    broadcast: tuple[str, ...] = ()
    """Those of `reads` that are small: a join copies them rather than moving the other side. They stand after
    FROM or JOIN; another name for one needs its AS."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs:
            why = f"it reads tables, and {self.inputs[0]} is given as a topic"
            raise self.error(why, "read an Events table of the topic")
        self.refuse_shown("column", self.columns)
        for what, names in (("key", self.keys), ("column in by", self.by)):
            self.refuse_unknown(what, names, self.columns)
            self.refuse_names(what, names)
        if not self.keys:
            raise self.error("it has no keys", "name the columns that identify a row")
        for name in self.broadcast:
            if name not in self.reads:
                why = f"broadcast {name!r} is not one of its reads: {', '.join(self.reads)}"
                raise self.error_at_text(name, why)
            if _hinted(self.sql, (name,)) == self.sql:
                why = f"broadcast {name!r} stands after no FROM or JOIN of its sql"
                raise self.error_at_text(name, why, f"write JOIN {name}, or JOIN {name} AS another name")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Derived:
        return read(cls, data, reads=texts, columns=texts, keys=texts, by=texts, broadcast=texts)

    @property
    def view_keys(self) -> tuple[str, ...]:
        return self.keys

    @property
    def output(self) -> tuple[str, ...]:
        return self.columns

    @property
    def implied(self) -> tuple[str, ...]:
        return ()

    @property
    def timeless(self) -> tuple[str, ...]:
        # what a table that it reads shows of time comes from pins, which are alike on both sides
        return self.columns

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        return iter(())  # a whole query is judged as one, by `problems`

    @property
    def query(self) -> str:
        return self.sql

    def mistyped(self, types: Mapping[str, str]) -> Iterator[DefinitionError]:
        for why in self._mistyped(types):
            yield self.error_at_text(self.sql, f"sql: {why}")

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        spark = next(iter(rows.values())).sparkSession
        refused = list(refused_text(self.sql, self.reads, spark))
        if not refused:
            refused = list(self._misread(rows))
        for why in refused:
            yield self.error_at_text(self.sql, f"sql: {why}")

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        shown = [quote.names(self.columns)]
        shown += [f"abs({quote.name(name)}) AS {quote.name(scale_of(name))}" for name in scaled]
        return self._text(relations, ", ".join(shown))

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        return behind_sql(source, shown, same(column for column in self.by if column in columns))

    def _text(self, relations: Mapping[str, str], shown: str) -> str:
        bound = ",\n".join(f"{quote.name(name)} AS (SELECT * FROM {relations[name]})" for name in self.reads)
        return f"WITH {bound}\nSELECT {shown}\nFROM {quote.expression(_hinted(self.sql, self.broadcast))}"

    def _misread(self, rows: Mapping[str, DataFrame]) -> Iterator[str]:
        """What the analysed query tells: other columns than are named, an impure function, a bad key."""
        from pyspark.errors import PySparkException

        relations = {name: nothing(rows[name].dtypes) for name in self.reads}
        try:
            found = rows[self.reads[0]].sparkSession.sql(self._text(relations, "*"))
        except PySparkException as error:
            yield first_line(error)
            return
        if tuple(found.columns) != self.columns:
            yield f"its columns are {', '.join(found.columns)}, not {', '.join(self.columns)}"
            return
        yield from self._mistyped(dict(found.dtypes))
        yield from refused_plan(found)

    def _mistyped(self, types: Mapping[str, str]) -> Iterator[str]:
        yield from (f"column {name} has no type; cast it" for name in self.columns if types[name] == "void")
        yield from (
            f"column {name}: {types[name]} cannot be compared; for a map, show sort_array(map_entries(...))"
            for name in self.columns
            if name not in self.keys and not is_comparable(types[name])
        )
        yield from (
            f"column {name}: {types[name]} cannot be a key"
            for name in self.keys
            if not has_order(types[name])
        )


_AFTER_A_TABLE = (
    "ON|USING|JOIN|INNER|LEFT|RIGHT|FULL|CROSS|NATURAL|SEMI|ANTI|LATERAL|WHERE|GROUP|HAVING|ORDER|SORT|CLUSTER"
    "|DISTRIBUTE|LIMIT|OFFSET|WINDOW|UNION|EXCEPT|MINUS|INTERSECT|TABLESAMPLE|PIVOT|UNPIVOT|VERSION|TIMESTAMP|FOR"
)
"""What follows a table's name that is not another name for it."""


def _hinted(sql: str, broadcast: tuple[str, ...]) -> str:
    """The text with each of these tables put into brackets with the hint, where it is joined.

    In the common table expression that the name is bound to Spark would lose it.
    """
    names = "|".join(map(re.escape, broadcast))
    # what is matched first is left alone: texts, quoted names, comments, and a FROM that no table follows
    raw = r"""\br'[^']*'|\br"[^"]*\""""
    text = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/"""
    other = r"""\bDISTINCT\s+FROM\b|\b(?:EXTRACT|TRIM|SUBSTRING|SUBSTR|OVERLAY)\s*\([^()]*?\bFROM\b"""
    token = f"{raw}|{text}|{other}"
    alias = rf"(?P<alias>\s+(?:AS\b|(?=[a-z_`])(?!(?:{_AFTER_A_TABLE})\b)))?"
    joined = rf"\b(?P<before>FROM|JOIN)(?P<space>\s+)(?P<name>{names})\b(?!\s*[.(]){alias}"

    def hint(found: re.Match[str]) -> str:
        if not (name := found["name"]):
            return found[0]
        alias = found["alias"] or f" AS {name}"
        return f"{found['before']}{found['space']}(SELECT /*+ BROADCAST({name}) */ * FROM {name}){alias}"

    return re.sub(f"{token}|{joined}", hint, sql, flags=re.IGNORECASE | re.DOTALL) if broadcast else sql
