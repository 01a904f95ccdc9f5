"""Failing view: whether a version of a view kind can be read at all, and what makes the reading raise.

Nothing of it is computed before somebody reads it: an expression that raises for one record stalls nobody,
and fails every query that needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.base.errors import first_lines
from twinlake.difference.diff import Side
from twinlake.difference.pinned import side
from twinlake.kinds.expression import Stage
from twinlake.lake.catalog.failing_record import FailingRecord, failing_record, first_failing, is_of_data
from twinlake.lake.catalog.maintained_version import Computed, LogView, MaintainedVersion
from twinlake.lake.catalog.version import Pin
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_NO_ROWS = "its rows cannot be computed"
Computable = LogView | Computed
"""What is computed when it is read: of a maintained version nothing can raise any more."""


@dataclass(frozen=True, kw_only=True)
class Failing:
    """What raises: of which table, in which columns of it, and for which record, where that is known."""

    table: str
    what: str
    why: str
    columns: tuple[str, ...] = ()
    record: FailingRecord | None = None

    @property
    def words(self) -> str:
        return f"table {self.table}: {self.what}: {self.why}"

    @property
    def key(self) -> dict[str, Any]:
        """Where the record is; nothing where it is not known."""
        if self.record is None:
            return {}
        return {name: getattr(self.record, name) for name in ("topic", "epoch", "partition", "offset")}


def readable_side(view: Computable, pin: Pin) -> tuple[Side, str] | None:
    """The side of a pinned view that raises: NULL in columns that do, no row where a key or a condition does.
    With it, what raises and for which record; None for a view that can be read.

    Reads the history once for each column.
    """
    from pyspark.sql import functions as F

    whole = side(view, pin)
    if (found := raising(view, pin, whole.rows)) is None:
        return None
    wrong = [name for name in whole.rows.columns if _raised(whole.rows.select(quote.name(name)))]
    nulls = {name: F.lit(None).cast(type_) for name, type_ in whole.rows.dtypes if name in wrong}
    if _raised(whole.rows.selectExpr("1")) or set(wrong) & set(view.definition.view_keys):
        rows = whole.rows.where("false")
    else:
        rows = whole.rows.withColumns(nulls)
    return replace(whole, rows=rows), found.words


def raising(view: Computable, pin: Pin, rows: DataFrame) -> Failing | None:
    """What makes these rows of the pinned view raise, all of which are computed; None if nothing does."""
    error = _raised(rows)
    return failing(view, pin, error) if error else None


def evaluate(rows: DataFrame) -> None:
    """Compute every column of every row and keep none; raises what an expression raises."""
    rows.write.format("noop").mode("overwrite").save()


def failing(view: Computable, pin: Pin, error: Exception) -> Failing | None:
    """What made the reading of the pinned view raise this; None where the machine is to blame, not a value.

    Reads the history once more for each expression or column, until the one is found. What a view that it
    reads raises is reported of that one.
    """
    if not is_of_data(error):
        return None
    table = view.definition.name
    if isinstance(view, Computed):
        (topic,) = view.logs
        record = failing_record(view.definition, view.log.rows(0, pin.position[topic]))
        if record:
            return Failing(table=table, what=record.what, why=record.why, record=record)
        return Failing(table=table, what=_NO_ROWS, why=first_lines(error))
    for name, read in view.reads.items():
        if not isinstance(read, MaintainedVersion):
            try:
                evaluate(read.view(pin.reads[name]))
            except Exception as below:
                if found := failing(read, pin.reads[name], below):
                    return found
    for topic, stage in _stages(view, pin):
        if record := first_failing(topic, [stage]):
            columns = tuple(
                one for one in view.definition.output if record.expression.startswith(f"column {one} ")
            )
            return Failing(table=table, what=record.what, why=record.why, columns=columns, record=record)
    shown = view.view(pin)
    if not _raised(shown.selectExpr("1")):  # else no column is to blame
        for column in view.definition.timeless:
            if _raised(shown.select(quote.name(column))):
                what = f"column {column} raises"
                return Failing(table=table, what=what, why=first_lines(error), columns=(column,))
    return Failing(table=table, what=_NO_ROWS, why=first_lines(error))


def _stages(view: LogView, pin: Pin) -> Iterator[tuple[str, Stage]]:
    """Its expressions over the rows that they see, which have the record ids of records of the topic."""
    definition = view.definition
    if not definition.reads:
        for topic in definition.inputs if len(definition.inputs) == 1 else ():
            rows = view.logs[topic].rows(0, pin.position[topic])
            yield from ((topic, stage) for stage in definition.stages({topic: rows}))
    elif (paired := definition.paired) is not None:
        pairs = replace(view, definition=paired.definition).view(pin)
        for table, columns in paired.records:
            there = pairs.where(f"{columns[0]} IS NOT NULL")
            at = dict(zip(record_id.KEY, map(there.__getitem__, columns), strict=True))
            (topic,) = view.reads[table].definition.inputs
            yield topic, Stage(rows=there.withColumns(at), expressions=paired.expressions)


def _raised(rows: DataFrame) -> Exception | None:
    """What an expression raises over the rows."""
    try:
        evaluate(rows)
    except Exception as error:
        if is_of_data(error):
            return error
        raise
    return None
