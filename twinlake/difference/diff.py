"""Diff: the keyed difference between two relations, by the one rule of equality (twinlake/kinds/equality.py).

Certificates (speed against batch), release comparisons (blue against green) and changelogs (then against now)
all come here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, Literal

from twinlake.difference.over_time import Bucket, Buckets, added, bucketed
from twinlake.kinds.equality import is_number, same

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.types import StructType

Sort = Literal["changed", "only_left", "only_right"]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One relation; `scales` maps each double with a tolerance to the column that has its scale."""

    rows: DataFrame
    scales: Mapping[str, str] = field(default_factory=dict)

    @property
    def types(self) -> dict[str, str]:
        """The columns that are compared, and their Spark types: all but scales that are nothing else."""
        hidden = {scale for column, scale in self.scales.items() if scale not in self.scales}
        return {name: type_ for name, type_ in self.rows.dtypes if name not in hidden}


@dataclass(frozen=True, kw_only=True)
class Differing:
    """One differing row as Spark gave it; `columns` are those that differ, none where a side is missing."""

    sort: Sort
    left: Row | None
    right: Row | None
    columns: tuple[str, ...] = ()

    @property
    def known(self) -> Row:
        """A side that is there; both have the row's key."""
        found = self.left if self.left is not None else self.right
        assert found is not None  # a differing row is on one side at least
        return found


@dataclass(frozen=True, kw_only=True)
class ColumnDiff:
    """`changed` counts the common rows in which the column differs; totals are sums, NULL on overflow."""

    name: str
    types: tuple[str, str]
    changed: int
    totals: tuple[Any, Any] | None = None
    """Of a column that was named as one that adds up."""


@dataclass(frozen=True, kw_only=True)
class Diff:
    """Rows counted by key; `columns` are those of both sides but the keys, `rows` the first that differ."""

    common: int
    changed: int
    only_left: int
    only_right: int
    columns: tuple[ColumnDiff, ...]
    rows: tuple[Differing, ...]
    over_time: Buckets | None = None

    @property
    def compared(self) -> int:
        return self.common + self.only_left + self.only_right

    @property
    def differing(self) -> int:
        return self.changed + self.only_left + self.only_right


def diff(
    left: Side,
    right: Side,
    keys: Sequence[str],
    *,
    shown: int,
    totals: Collection[str] = (),
    over: str | None = None,
    largest_first: bool = False,
) -> Diff:
    """The difference of two relations in which `keys` are unique, in one Spark job, or two if they differ.

    At most `shown` differing rows of each sort are kept, the first by key of those whose times Python knows;
    with `largest_first`, those that have the largest share of what any column of numbers differs by. Columns
    that only one side has are left out. The numbers that `totals` names are summed up on both sides; `over`
    is a column of time by which all of that is counted, too.
    """
    from pyspark.sql import functions as F

    types = {
        name: (type_, right.types[name])
        for name, type_ in left.types.items()
        if name in right.types and name not in keys
    }
    numbers = [name for name, both_types in types.items() if all(map(is_number, both_types))]
    joined = _joined(left.rows, right.rows, keys)
    both = F.col("l").isNotNull() & F.col("r").isNotNull()
    differs = {name: both & ~_same(left, right, name, types[name]) for name in types}
    changed = reduce(or_, differs.values(), F.lit(False))
    counted = {
        "common": both,
        "changed": changed,
        "only_left": F.col("r").isNull(),
        "only_right": F.col("l").isNull(),
        **{f"changed_{index}": differs[name] for index, name in enumerate(types)},
    }
    missing = F.col("l").isNull() | F.col("r").isNull()
    moves = {
        name: _move(name, differs[name] | missing if name in totals else differs[name], name in totals)
        for name in numbers if largest_first
    }  # fmt: skip
    placed = joined if over is None else _placed(joined, over, over in keys)
    values = {
        f"total_{side}_{index}": (_there(side, over, _at(side, name)), type_)
        for index, name in enumerate(types)
        if name in totals and name in numbers
        for side, type_ in zip("lr", types[name], strict=True)
    } | {
        f"move_{index}": (_there("", over, F.when(move < math.inf, move)), "double")
        for index, move in enumerate(moves.values())
    }  # fmt: skip
    summed = {name: (_total(value, type_), value) for name, (value, type_) in values.items()}
    counts = [F.count_if(_there("", over, one)).alias(name) for name, one in counted.items()]
    buckets = None
    if over is None:
        row = placed.agg(*counts, *(total.alias(name) for name, (total, _) in summed.items())).first()
        assert row is not None  # an aggregate without groups has one row
        found = row.asDict()
    else:
        counts += [F.count_if(_there(side, over, F.col(side).isNotNull())).alias(side) for side in "lr"]
        by_time = bucketed(placed, F.col("at.time"), changed | missing, counts, summed)
        found = added(by_time, summed, counted)
        buckets = _buckets(over, by_time, list(types))

    columns = tuple(
        ColumnDiff(
            name=name, types=types[name], changed=found[f"changed_{index}"],
            totals=_pair(found, index),
        )
        for index, name in enumerate(types)
    )  # fmt: skip
    outcome = {name: found[name] for name in ("common", "changed", "only_left", "only_right")}
    rows: tuple[Differing, ...] = ()
    if outcome["changed"] or outcome["only_left"] or outcome["only_right"]:
        for side, one in (("l", left), ("r", right)):
            joined = joined.where(known_to_python(one.rows.schema, partial(_at, side)))
        whole = [found[f"move_{index}"] for index in range(len(moves))]
        size = _largest_share(zip(moves.values(), whole, strict=True))
        rows = _first_rows(joined, differs, changed, keys, shown, size)
    return Diff(**outcome, columns=columns, rows=rows, over_time=buckets)


def _pair(row: Mapping[str, Any], index: int) -> tuple[Any, Any] | None:
    """The totals of the column of that number on both sides; None of one that does not add up."""
    names = [f"total_{side}_{index}" for side in "lr"]
    return (row[names[0]], row[names[1]]) if names[0] in row else None


def _buckets(over: str, by_time: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Buckets:
    def bucket(row: Mapping[str, Any]) -> Bucket:
        pairs = {name: pair for index, name in enumerate(names) if (pair := _pair(row, index)) is not None}
        return Bucket(
            at=row["at"], left=row["l"], right=row["r"],
            differing=row["changed"] + row["only_left"] + row["only_right"], totals=pairs,
        )  # fmt: skip

    sizes = (row["size"] for row in by_time if row["size"] is not None)
    return Buckets(
        column=over, seconds=max(next(sizes, 0), 1), rows=(*map(bucket, by_time),),
        first=min((row["first"] for row in by_time if row["first"] is not None), default=None),
        last=max((row["last"] for row in by_time if row["last"] is not None), default=None),
    )  # fmt: skip


def _placed(joined: DataFrame, over: str, is_key: bool) -> DataFrame:
    """Each row with `at`: its time, NULL where Python does not know it, and which sides are there (l, r).

    A row whose sides have different times is there twice, each side at its own. What is counted once is
    counted at that of the right side, which is the newer one.
    """
    from pyspark.sql import functions as F

    def at(time: Column, *sides: str) -> Column:
        there = (F.lit(side in sides).alias(side) for side in "lr")
        return F.struct(time.alias("time"), *there)

    times = {}
    for side in "lr":
        time = _at(side, over).cast("timestamp")
        times[side] = F.when(_is_known(time), time)
    together = at(F.coalesce(times["r"], times["l"]), "l", "r")
    if is_key:
        return joined.select("l", "r", together.alias("at"))
    apart = F.col("l").isNotNull() & F.col("r").isNotNull() & ~times["l"].eqNullSafe(times["r"])
    each = F.when(apart, F.array(*(at(times[side], side) for side in "lr"))).otherwise(F.array(together))
    return joined.select("l", "r", F.explode(each).alias("at"))


def _there(side: str, over: str | None, value: Column) -> Column:
    """The value where the row is placed for that side, or once where none is named; NULL elsewhere."""
    from pyspark.sql import functions as F

    return value if over is None else F.when(F.col(f"at.{side or 'r'}"), value)


def _move(name: str, differs: Column, adds_up: bool) -> Column:
    """By how much a row differs there, as a double: infinitely where one side is no number. Of what adds up,
    a row that is missing counts as 0."""
    from pyspark.sql import functions as F

    sides = [_at(side, name).cast("double") for side in "lr"]
    if adds_up:
        sides = [F.coalesce(one, F.lit(0.0)) for one in sides]
    return F.when(differs, F.nanvl(F.abs(sides[0] - sides[1]), F.lit(math.inf)))


def _largest_share(moves: Iterable[tuple[Column, float | None]]) -> Column:
    """The largest share that a row has in what a column differs by: units do not matter then.

    `moves` have with each the sum of its finite ones; an infinite one is a share of its own.
    """
    from pyspark.sql import functions as F

    shares = []
    for move, whole in moves:
        finite = min(whole or sys.float_info.max, sys.float_info.max)
        shares.append(F.least(F.coalesce(move, F.lit(0.0)) / F.lit(finite), F.lit(1.0)))
    return F.greatest(F.lit(0.0), F.lit(0.0), *shares)


def changes(left: Side, right: Side, keys: Sequence[str], carried: Collection[str] = ()) -> DataFrame:
    """Every differing row: `l` and `r` are the whole rows of both sides, NULL where a side lacks the key.

    Rows of sides with other columns, or columns of other types, all differ. What is `carried` are columns of
    the left side that are not compared.
    """
    from pyspark.sql import functions as F

    joined = _joined(left.rows, right.rows, keys)
    types = {name: type_ for name, type_ in left.types.items() if name not in carried}
    if types != right.types:
        return joined
    differs = (~_same(left, right, name, (type_, type_)) for name, type_ in types.items() if name not in keys)
    missing = F.col("l").isNull() | F.col("r").isNull()
    return joined.where(reduce(or_, differs, missing))


def _joined(left: DataFrame, right: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Columns l and r: the whole row of each side, NULL where that side lacks the key."""
    from pyspark.sql import functions as F

    sides = (left.select(F.struct("*").alias("l")), right.select(F.struct("*").alias("r")))
    on = reduce(and_, (_at("l", key).eqNullSafe(_at("r", key)) for key in keys))
    return sides[0].join(sides[1], on, "full_outer")


def _at(side: str, name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(side).getField(name)


def _same(left: Side, right: Side, name: str, types: tuple[str, str]) -> Column:
    scales = [_at(side, scales[name]) for side, scales in (("l", left.scales), ("r", right.scales))
              if name in scales]  # fmt: skip
    return same(_at("l", name), _at("r", name), types, scales)


def _first_rows(
    joined: DataFrame,
    differs: Mapping[str, Column],
    changed: Column,
    keys: Sequence[str],
    shown: int,
    size: Column,
) -> tuple[Differing, ...]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    missing = {"only_left": F.col("r").isNull(), "only_right": F.col("l").isNull()}
    sort = F.lit("changed")
    for name, condition in missing.items():
        sort = F.when(condition, name).otherwise(sort)
    key = F.struct(*(F.coalesce(_at("l", name), _at("r", name)).alias(name) for name in keys))
    names = F.array().cast("array<string>")
    if differs:
        named = (F.when(condition, F.lit(name)) for name, condition in differs.items())
        names = F.array_compact(F.array(*named))
    picked = (
        joined.where(reduce(or_, missing.values(), changed))
        .select(sort.alias("sort"), key.alias("key"), "l", "r", names.alias("names"), size.alias("size"))
        .withColumn("nth", F.row_number().over(Window.partitionBy("sort").orderBy(F.desc("size"), "key")))
        .where(F.col("nth") <= shown)
        .orderBy("sort", "nth")
    )
    return tuple(
        Differing(
            sort=row["sort"], left=row["l"], right=row["r"],
            columns=tuple(row["names"]) if row["sort"] == "changed" else (),
        )
        for row in picked.collect()  # not by Arrow: it refuses structs whose fields are never null
    )  # fmt: skip


def known_to_python(schema: StructType, at: Callable[[str], Column]) -> Column:
    """Whether a row's times are of the years 1 to 9999 in any zone: of others nothing can be collected.

    `at` makes the column of a name; times within structs and arrays are not looked at.
    """
    from pyspark.sql import functions as F

    times = (at(column.name) for column in schema if column.dataType.typeName() == "timestamp")
    known = (F.coalesce(_is_known(time), F.lit(True)) for time in times)
    return reduce(and_, known, F.lit(True))


def _is_known(time: Column) -> Column:
    from pyspark.sql import functions as F

    first, last = "TIMESTAMP '0001-01-03 00:00:00Z'", "TIMESTAMP '9999-12-30 00:00:00Z'"
    return time.between(F.expr(first), F.expr(last))


def _total(column: Column, type_: str) -> Column:
    """A sum that cannot fail: NULL where it does not fit."""
    from pyspark.sql import functions as F

    if type_ in ("double", "float"):
        return F.sum(column)
    scale = type_.split(",")[1].rstrip(")") if "," in type_ else "0"
    return F.try_sum(column.cast(f"decimal(38,{scale})"))
