"""Owns what kinds with measures do with them: refuse them, compute and merge states, show values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from twinlake.kinds.definition import Definition
from twinlake.kinds.equality import has_order, scale_of
from twinlake.kinds.measures.measure import Measure, Part

if TYPE_CHECKING:
    from pyspark.sql import Column

    from twinlake.base.errors import DefinitionError

Measures = Mapping[str, Measure]
Types = Mapping[str, str]
"""Spark types of columns, of the row-local steps or of a state."""


def additive(measures: Measures) -> tuple[str, ...]:
    """Those whose values add up over groups that share no rows."""
    return tuple(name for name, measure in measures.items() if measure.adds_up)


def refuse_shape(definition: Definition, measures: Measures, keys: tuple[str, ...], columns: Types) -> None:
    """DefinitionError where there are no measures, or keys or measured columns that are none of `columns`."""
    definition.refuse_unknown("key", keys, columns)
    measured = (column for measure in measures.values() for column in measure.columns)
    definition.refuse_unknown("measured column", measured, columns)
    if not measures:
        raise definition.error("it has no measures")


def refuse_log_order(definition: Definition, measures: Measures) -> None:
    """DefinitionError for a measure that the order of the records decides."""
    for name, measure in measures.items():
        if measure.follows_log:
            why = f"measure {name} ({measure.kind}) follows the log, whose order two topics do not share"
            raise definition.error_at_text(name, why, "leave it out")


def problems(
    definition: Definition,
    measures: Measures,
    keys: tuple[str, ...],
    columns: Mapping[str, str],
    types: Types,
) -> Iterator[DefinitionError]:
    """Keys and measured columns of types that they cannot have; `columns` maps names to their SQL."""
    for name in keys:
        if not has_order(types[name]):
            yield definition.error_at_text(columns[name], f"column {name}: {types[name]} cannot be a key")
    for name, measure in measures.items():
        why_not = measure.refuses({column: types[column] for column in measure.columns})
        if why_not:
            of = f" of {', '.join(measure.columns)}" if measure.columns else ""
            yield definition.error_at_text(name, f"measure {name} ({measure.kind}{of}): {why_not}")


def from_rows(measures: Measures, types: Types) -> list[Column]:
    """Aggregates over the rows of the steps: the state columns."""
    from pyspark.sql import functions as F

    parts = (part for name, measure in measures.items() for part in measure.parts(name, types))
    return [F.expr(part.from_rows).alias(part.name) for part in parts]


def merged(measures: Measures, states: Types) -> list[Column]:
    """Aggregates over states: the same columns."""
    from pyspark.sql import functions as F

    return [F.expr(part.merge).alias(part.name) for part in _stored(measures, states)]


def scales(measures: Measures, states: Types) -> dict[str, str]:
    """For each double state column with a tolerance, the state column with its sum of absolute values."""
    return {part.name: part.scale for part in _stored(measures, states) if part.scale is not None}


def values(measures: Measures, scaled: tuple[str, ...]) -> dict[str, str]:
    """By column of the view, aggregate SQL over the states; then the scales of those in `scaled`."""
    shown = {name: measure.value(name) for name, measure in measures.items()}
    asked = {name: measures[name].scale(name) for name in scaled if name in measures}
    return shown | {scale_of(name): scale for name, scale in asked.items() if scale is not None}


def _stored(measures: Measures, states: Types) -> Iterator[Part]:
    """The measures' parts in states that are there already."""
    return (part for name, measure in measures.items() for part in measure.stored_parts(name, states))
