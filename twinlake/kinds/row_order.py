"""Owns what kinds share that choose between the rows of a key: by columns in order, then by the record id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.kinds import steps
from twinlake.kinds.definition import Definition
from twinlake.kinds.equality import has_order
from twinlake.kinds.expression import Expression, Stage, holds_sql
from twinlake.kinds.lineage import row_of_step
from twinlake.kinds.steps import Stepped
from twinlake.topics import record_id
from twinlake.topics.record_key import TOMBSTONE, tombstone

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from twinlake.base.errors import DefinitionError


def refuse(
    definition: Definition, columns: Mapping[str, str], keys: Sequence[str], order: Sequence[str],
    values: Sequence[str],
) -> None:  # fmt: skip
    """DefinitionError where there are no keys or values, or where one of all these is none of `columns`."""
    for what, names in (("key", keys), ("value", values)):
        if not names:
            raise definition.error(f"it has no {what}s")
        definition.refuse_unknown(what, names, columns)
    definition.refuse_unknown("order column", order, columns)


def problems(
    definition: Definition, columns: Mapping[str, str], stepped: DataFrame, ordered: Iterable[str],
    values: Iterable[str],
) -> Iterator[DefinitionError]:  # fmt: skip
    """Columns of types that they cannot have: `ordered` are keys, and those that decide between rows."""
    yield from steps.untyped(definition, columns, stepped)
    yield from steps.incomparable(definition, columns, values, stepped)
    types = dict(stepped.dtypes)
    for name in ordered:
        if not has_order(types[name]):
            why = f"column {name}: {types[name]} cannot be a key or order"
            yield definition.error_at_text(columns[name], why)


def stages(table: Stepped, rows: DataFrame, delete_when: str | None) -> Iterator[Stage]:
    """Those of the steps, then the condition over what they make."""
    yield from steps.stages(table, rows)
    if delete_when is not None:
        condition = Expression(what="delete_when", sql=delete_when, type="boolean")
        yield Stage(rows=steps.apply(table, rows), expressions=(condition,))


def loses_tombstones(table: Stepped, rows: DataFrame, by: str, delete_when: str | None) -> bool:
    """Whether a tombstone is a delete whose column `by` is NULL: it comes before every value then."""
    if delete_when is None or TOMBSTONE not in rows.columns:
        return False
    stepped = steps.apply(table, tombstone(rows))
    return not stepped.where(f"{holds_sql(delete_when)} AND {quote.name(by)} IS NULL").isEmpty()


def known_of_tombstones(sql: str) -> str:
    """What to do about it; `sql` is that of the column."""
    return (
        f"order by what a tombstone has too, like coalesce({sql}, _timestamp), or leave `order` out: then it "
        "follows the log"
    )


def shape(definition: Definition, order: Sequence[str]) -> Mapping[str, Any]:
    """`Kind.shape` of a kind that follows the log where it has no order."""
    if not order:
        raise definition.error("it follows the log, whose order two topics do not share", "give it an order")
    return steps.shape_of(definition)


def computed(order: Iterable[str]) -> dict[str, Column]:
    """The columns of a state with what decides between rows, beside their record ids."""
    from pyspark.sql import functions as F

    return {_column(index): F.col(quote.name(name)) for index, name in enumerate(order)}


def deciding(order: Sequence[str]) -> tuple[str, ...]:
    """Their names, and those of the record id, which makes them unique."""
    return (*(_column(index) for index in range(len(order))), *record_id.KEY)


def decided_by(order: Iterable[str]) -> tuple[str, ...]:
    """`Kind.decided_by` of rows of which the greatest is chosen."""
    return (*map(row_of_step, order), *map(quote.name, record_id.KEY))


def _column(index: int) -> str:
    return f"_order_{index}"
