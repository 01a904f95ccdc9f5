"""Asks a law of many histories at once: which of them show something else than the oracle says.

A law is a function that tells what is wrong, so that a planted mistake can be seen to be caught by it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.laws.histories import History, Record
from tests.laws.tables import stored, view_text
from twinlake.spark.prepared_plan import ArrowFile, PreparedPlan, computed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from twinlake.kinds.windows import Windows

Shown = dict[tuple[Any, ...], dict[str, Any]]
"""By key, the values; of doubles that add up, the size is beside them as `<name>_size`."""
SIDES = ("cut", "whole")


def shown(rows: Iterable[Row], keys: tuple[str, ...]) -> dict[tuple[int, str], Shown]:
    """By history and side; two rows of one key are an error."""
    found: dict[tuple[int, str], Shown] = defaultdict(dict)
    for row in rows:
        values = {name: _plain(value) for name, value in row.asDict().items()}
        index, side = values.pop("history").split("/")
        key = tuple(values.pop(name) for name in keys)
        assert key not in found[int(index), side], f"two rows for {key}"
        found[int(index), side][key] = values
    return found


def wrong_views(
    spark: SparkSession,
    table: Any,
    rows: DataFrame,
    many: Sequence[History],
    expected: Callable[[Iterable[Record]], Shown],
) -> list[tuple[int, str]]:
    """The histories and sides of which the view shows something else; `rows` are all of them packed."""
    stored(table, rows).createOrReplaceTempView("cuts")
    return wrong_rows(spark.sql(view_text(table, "cuts")), table, many, expected)


def wrong_rows(
    view: DataFrame, table: Any, many: Sequence[History], expected: Callable[[Iterable[Record]], Shown]
) -> list[tuple[int, str]]:
    """The same of rows that are shown already."""
    keys = tuple(key for key in table.view_keys if key != "history")
    found = shown(view.select(*table.timeless).collect(), keys)
    return [
        (index, side)
        for index, history in enumerate(many)
        for side in SIDES
        if not same(found[index, side], expected(history.records))
    ]


def wrong_states(table: Any, rows: DataFrame, many: Sequence[History]) -> list[int]:
    """The histories whose merged states depend on the cut; of doubles the laws of scales tell."""
    merged = table.merge(stored(table, rows))
    scales = table.scales(dict(merged.dtypes))
    found = shown(merged.drop(*scales).collect(), tuple(key for key in table.state_keys if key != "history"))
    return [index for index in range(len(many)) if found[index, "cut"] != found[index, "whole"]]


def wrong_ranges(table: Any, rows: DataFrame, ranges: Sequence[Windows], cell: str) -> list[Windows]:
    """The ranges whose states are not those of all cells that start in them; all are asked about at once.

    Doubles that add up are left out: they depend on the order.
    """
    from pyspark.sql import functions as F

    states = table.partial(rows)
    doubles = table.scales(dict(states.dtypes))
    of_each = [
        table.partial(rows, asked).withColumn("range", F.lit(number)) for number, asked in enumerate(ranges)
    ]
    within = F.array(*(F.expr(asked.predicate(cell)) for asked in ranges))
    found = _by_range(reduce(lambda one, other: one.union(other), of_each).drop(*doubles))
    whole = states.select("*", F.posexplode(within).alias("range", "is_within")).where("is_within")
    expected = _by_range(whole.drop("is_within", *doubles))
    for number, asked in enumerate(ranges):
        assert bool(expected[number]) == bool(asked.ranges)
    return [asked for number, asked in enumerate(ranges) if found[number] != expected[number]]


def wrong_kept_plans(spark: SparkSession, table: Any, batches: Sequence[DataFrame]) -> list[int]:
    """The batches of which kept plans of the partial and the merge say something else than fresh ones."""
    partial = PreparedPlan(spark, batches[0].schema, table.partial)
    merge = PreparedPlan(spark, table.partial(batches[0]).schema, table.merge)
    found = []
    for number, rows in enumerate(batches):
        fresh = computed(table.partial(rows.coalesce(1)))
        kept = partial.run(ArrowFile(spark, computed(rows)))
        again = merge.run(ArrowFile(spark, kept))
        if kept.schema != fresh.schema or not _rows(kept) == _rows(fresh) == _rows(again):
            found.append(number)
    return found


def _by_range(states: DataFrame) -> dict[int, Counter[str]]:
    """Both sides have their columns in one order."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for row in states.collect():
        values = row.asDict()
        found[values.pop("range")][repr(values)] += 1
    return found


def _rows(found: pa.Table) -> list[str]:
    return sorted(map(repr, found.to_pylist()))


def same(found: Shown, expected: Shown) -> bool:
    """Doubles may differ by 1e-9 of the sum of sizes."""
    return found.keys() == expected.keys() and all(
        _close(value, expected[key][name], expected[key].get(f"{name}_size"))
        for key, values in found.items()
        for name, value in values.items()
    )


def _close(found: Any, expected: Any, size: float | None) -> bool:
    if size is None or None in (found, expected):
        return bool(found == expected)
    return bool(abs(found - expected) <= 1e-9 * size)


def _plain(value: Any) -> Any:
    return value.astimezone(UTC) if hasattr(value, "astimezone") else value
