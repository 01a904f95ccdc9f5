"""Owns the row-local steps of a definition: explode, then where, then columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from twinlake.base import quote
from twinlake.kinds.definition import Definition, refuse_keys
from twinlake.kinds.equality import is_comparable
from twinlake.kinds.expression import Expression, Stage
from twinlake.kinds.lineage import ROW
from twinlake.topics import record_id
from twinlake.topics.avro_type import COLUMN_NAME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from twinlake.base.errors import DefinitionError

NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Explode:
    """One row per element of an array, the element as a further column `name`; an empty array gives none."""

    name: str
    """What the element is called in `where` and `columns`; no field of the topic has this name."""
    array: str
    """SQL over the topic's fields that gives an array, such as the name of one."""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "array": self.array}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Explode:
        """The inverse of `to_json`; an unknown key is refused by name."""
        refuse_keys(data, {"name", "array"}, "explode")
        return cls(**data)


class Stepped(Protocol):
    """A definition whose rows go through these steps. All texts are Spark SQL over the topic's rows."""

    @property
    def where(self) -> str | None: ...

    @property
    def columns(self) -> dict[str, str]: ...


def refuse_shape(definition: Definition, columns: Mapping[str, str]) -> None:
    """DefinitionError where there are no columns, or their names are none."""
    if not columns:
        raise definition.error("it has no columns", "map each column's name to its SQL")
    definition.refuse_names("column", columns)


def shape_of(definition: Definition) -> dict[str, Any]:
    """All that it says but its name, its topic and its row-local steps."""
    own = ("name", "inputs", "explode", "where", "columns")
    return {name: value for name, value in definition.to_json().items() if name not in own}


def refuse_explode(definition: Definition, explode: Explode) -> None:
    """DefinitionError for an element's name that is none."""
    if not COLUMN_NAME.fullmatch(explode.name):
        raise definition.error(f"explode name {explode.name!r} is not made of letters, digits and _")


def taken(definition: Definition, explode: Explode, rows: DataFrame) -> DefinitionError | None:
    """The problem where the element's name is a column already; every use of it would be ambiguous."""
    if not _is_taken(explode, rows):
        return None
    topic = definition.inputs[0]
    return definition.error(f"explode name {explode.name!r} is a column of topic {topic} already")


def apply(
    table: Stepped, rows: DataFrame, explode: Explode | None = None, beside: Mapping[str, str] = NOTHING
) -> DataFrame:
    """The rows after all steps: the columns of `columns`, then the record id columns, then those of
    `beside`, which are of a kind's own."""
    if explode:
        rows = exploded(explode, rows)
    if table.where is not None:
        rows = rows.where(table.where)
    shown = [column(rows, sql, name) for name, sql in table.columns.items()]
    own = [column(rows, sql, name) for name, sql in beside.items()]
    return rows.select(*shown, *record_id.NAMES, *own)


def column(rows: DataFrame, sql: str, name: str) -> Column | str:
    """A column as `select` of these rows takes it: of Spark's a Column, for the same as a text makes another
    plan, and with it another fingerprint of every table that stands; of rows without Spark the text."""
    if not hasattr(rows, "sparkSession"):
        return named(name, sql)
    from pyspark.sql import functions as F

    return F.expr(sql).alias(name)


def named(name: str, sql: str) -> str:
    """A column of a SELECT."""
    return f"{quote.expression(sql)} AS {quote.name(name)}"


def stepped_sql(table: Stepped, explode: Explode | None, source: str) -> str:
    """What follows FROM to read a topic's rows with what a definition's steps make of each, as `_row`."""
    if explode:
        source = f"(SELECT *, {element(explode)} FROM {source})"
    where = "" if table.where is None else f"\nWHERE {quote.condition(table.where)}"
    values = (f"{quote.string(name)}, {quote.expression(sql)}" for name, sql in table.columns.items())
    return f"(SELECT *, named_struct({', '.join(values)}) AS `{ROW}`\nFROM {source}{where})"


def exploded(explode: Explode, rows: DataFrame) -> DataFrame:
    """The rows once per element, the element as the last column."""
    return rows.select("*", column(rows, _exploding(explode), explode.name))


def element(explode: Explode) -> str:
    """What gives a SELECT a row for each element."""
    return f"{_exploding(explode)} AS {quote.name(explode.name)}"


def _exploding(explode: Explode) -> str:
    return f"explode({quote.expression(explode.array)})"


def stages(table: Stepped, rows: DataFrame, explode: Explode | None = None) -> Iterator[Stage]:
    """The expressions of the steps, each over the rows that it will see."""
    if explode:
        yield Stage(rows=rows, expressions=(Expression(what="explode", sql=explode.array, type="array"),))
        if _is_taken(explode, rows):
            return  # `taken` says it; what follows would only be called ambiguous
        rows = exploded(explode, rows)
    where = () if table.where is None else (
        Expression(what="where", sql=table.where, type="boolean", filters=True),
    )  # fmt: skip
    columns = (Expression(what=f"column {name}", sql=sql) for name, sql in table.columns.items())
    yield Stage(rows=rows, expressions=(*where, *columns))


def untyped(definition: Definition, columns: Mapping[str, str], rows: DataFrame) -> Iterator[DefinitionError]:
    """A problem for each column without a type; `rows` have been through the steps."""
    for name, type_ in rows.dtypes:
        if type_ == "void":
            yield definition.error_at_text(columns[name], f"column {name}: it has no type; cast it")


def incomparable(
    definition: Definition, columns: Mapping[str, str], shown: Iterable[str], rows: DataFrame
) -> Iterator[DefinitionError]:
    """A problem for each of the shown columns that no certificate could compare."""
    types = dict(rows.dtypes)
    for name in shown:
        if not is_comparable(type_ := types[name]):
            why = f"column {name}: {type_} cannot be compared"
            remedy = "for a map, take sort_array(map_entries(...)) or the values that matter"
            yield definition.error_at_text(columns[name], why, remedy)


def _is_taken(explode: Explode, rows: DataFrame) -> bool:
    return explode.name.lower() in (name.lower() for name in rows.columns)
