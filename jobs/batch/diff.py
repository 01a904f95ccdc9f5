"""Diff: the keyed difference between two relations, usually blue and green pinned at the same position.

Equality: exact types compare exactly, doubles within 1e-9 of the larger side, null equals null; rows meet by
key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from jobs.as_json import to_json

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DOUBLE_TOLERANCE = 1e-9
SAMPLES = 20
TOTALLED = ("decimal", "bigint", "int", "smallint", "tinyint", "double", "float")


@dataclass(frozen=True, kw_only=True)
class ColumnDiff:
    """`changed` counts common rows where the two sides differ; totals only where a total means something."""

    name: str
    type: str
    changed: int
    blue_total: str | None = None
    green_total: str | None = None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One differing row; `columns` are the ones that differ (empty where a side is missing)."""

    kind: str  # changed | only_blue | only_green
    key: dict[str, Any]
    blue: dict[str, Any] | None
    green: dict[str, Any] | None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Side:
    """Which version was compared, and the Delta version it was pinned at."""

    version: str
    delta_version: int


@dataclass(frozen=True, kw_only=True)
class Diff:
    """The result for one table; `common` counts the keys that both sides have."""

    table: str
    blue: Side
    green: Side
    position: dict[str, int]
    keys: tuple[str, ...]
    common: int
    changed: int
    only_blue: int
    only_green: int
    columns: tuple[ColumnDiff, ...] = ()
    columns_only_blue: tuple[str, ...] = ()
    columns_only_green: tuple[str, ...] = ()
    samples: tuple[Sample, ...] = ()

    @property
    def equal(self) -> bool:
        return not (
            self.changed or self.only_blue or self.only_green
            or self.columns_only_blue or self.columns_only_green
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        return {**to_json(asdict(self)), "equal": self.equal}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Diff:
        known = {key: value for key, value in stored.items() if key != "equal"}
        return cls(**{
            **known,
            "blue": Side(**known["blue"]),
            "green": Side(**known["green"]),
            "keys": tuple(known["keys"]),
            "columns": tuple(ColumnDiff(**column) for column in known["columns"]),
            "columns_only_blue": tuple(known["columns_only_blue"]),
            "columns_only_green": tuple(known["columns_only_green"]),
            "samples": tuple(
                Sample(**{**sample, "columns": tuple(sample["columns"])}) for sample in known["samples"]
            ),
        })  # fmt: skip


def compare(
    *,
    table: str,
    blue: DataFrame,
    green: DataFrame,
    keys: Sequence[str],
    sides: tuple[Side, Side],
    position: Mapping[str, int],
    ignore: Sequence[str] = (),
    samples: int = SAMPLES,
) -> Diff:
    """Two relations with unique `keys`, in two Spark jobs: counts, then the first differing rows by key."""
    from pyspark.sql import functions as F

    blue_columns = [name for name in blue.columns if name not in ignore]
    green_columns = [name for name in green.columns if name not in ignore]
    green_types, blue_types = dict(green.dtypes), dict(blue.dtypes)
    both = [name for name in blue_columns if name in green_columns]
    values = [name for name in both if name not in keys]

    left = blue.select(F.struct(*(F.col(f"`{name}`") for name in blue_columns)).alias("b"))
    right = green.select(F.struct(*(F.col(f"`{name}`") for name in green_columns)).alias("g"))
    on = F.lit(True)
    for key in keys:
        on = on & F.col("b").getField(key).eqNullSafe(F.col("g").getField(key))
    joined = left.join(right, on, "full_outer")

    has_blue, has_green = F.col("b").isNotNull(), F.col("g").isNotNull()
    here = has_blue & has_green
    differs = {
        name: here & ~_same(
            F.col("b").getField(name), F.col("g").getField(name), blue_types[name], green_types[name]
        )
        for name in values
    }  # fmt: skip
    any_differs: Column = F.lit(False)
    for condition in differs.values():
        any_differs = any_differs | condition

    counts = [
        F.count_if(here).alias("common"),
        F.count_if(any_differs).alias("changed"),
        F.count_if(has_blue & ~has_green).alias("only_blue"),
        F.count_if(has_green & ~has_blue).alias("only_green"),
    ]
    totalled = [
        name for name in values if _totalled(blue_types[name]) and _totalled(green_types[name])
    ]  # fmt: skip
    for index, name in enumerate(values):
        counts.append(F.count_if(differs[name]).alias(f"c{index}"))
        if name in totalled:
            counts.append(_total(F.col("b").getField(name), blue_types[name]).alias(f"b{index}"))
            counts.append(_total(F.col("g").getField(name), green_types[name]).alias(f"g{index}"))
    found = joined.agg(*counts).first()
    assert found is not None

    rows = _samples(joined, differs, any_differs, keys, samples) if samples else []
    return Diff(
        table=table,
        blue=sides[0],
        green=sides[1],
        position=dict(position),
        keys=tuple(keys),
        common=found["common"],
        changed=found["changed"],
        only_blue=found["only_blue"],
        only_green=found["only_green"],
        columns=tuple(
            ColumnDiff(
                name=name,
                type=_type(blue_types[name], green_types[name]),
                changed=found[f"c{index}"],
                blue_total=_plain(found[f"b{index}"]) if name in totalled else None,
                green_total=_plain(found[f"g{index}"]) if name in totalled else None,
            )
            for index, name in enumerate(values)
        ),
        columns_only_blue=tuple(name for name in blue_columns if name not in green_columns),
        columns_only_green=tuple(name for name in green_columns if name not in blue_columns),
        samples=tuple(rows),
    )


def _samples(
    joined: DataFrame,
    differs: Mapping[str, Column],
    any_differs: Column,
    keys: Sequence[str],
    limit: int,
) -> list[Sample]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    kind = (
        F.when(F.col("g").isNull(), "only_blue").when(F.col("b").isNull(), "only_green").otherwise("changed")
    )
    key = F.struct(
        *(F.coalesce(F.col("b").getField(name), F.col("g").getField(name)).alias(name) for name in keys)
    )
    names = F.array_compact(
        F.array(*(F.when(condition, F.lit(name)) for name, condition in differs.items()))
        if differs
        else F.array().cast("array<string>")
    )
    first = Window.partitionBy("kind").orderBy("key")
    picked = (
        joined.where(any_differs | F.col("b").isNull() | F.col("g").isNull())
        .select(kind.alias("kind"), key.alias("key"), "b", "g", names.alias("names"))
        .withColumn("nth", F.row_number().over(first))
        .where(F.col("nth") <= limit)
        .orderBy("kind", "nth")
    )
    return [
        Sample(
            kind=row["kind"],
            key=to_json(row["key"]),
            blue=to_json(row["b"]),
            green=to_json(row["g"]),
            columns=tuple(row["names"]) if row["kind"] == "changed" else (),
        )
        for row in picked.collect()  # not by Arrow: it refuses structs whose fields are never null
    ]


def _same(blue: Column, green: Column, blue_type: str, green_type: str) -> Column:
    from pyspark.sql import functions as F

    if blue_type in ("double", "float") and green_type in ("double", "float"):
        within = F.abs(blue - green) <= DOUBLE_TOLERANCE * F.greatest(F.abs(blue), F.abs(green))
        return blue.eqNullSafe(green) | F.coalesce(within, F.lit(False))
    if blue_type != green_type and not (_totalled(blue_type) and _totalled(green_type)):
        return blue.cast("string").eqNullSafe(green.cast("string"))
    return blue.eqNullSafe(green)


def _totalled(type_name: str) -> bool:
    return type_name.split("(")[0] in TOTALLED


def _total(column: Column, type_name: str) -> Column:
    """A sum that cannot fail: null where it does not fit."""
    from pyspark.sql import functions as F

    if type_name in ("double", "float"):
        return F.sum(column)
    scale = type_name.split(",")[1].rstrip(")") if "," in type_name else "0"
    return F.try_sum(column.cast(f"decimal(38,{scale})"))


def _plain(value: Any) -> str | None:
    return None if value is None else str(to_json(value))


def _type(blue: str, green: str) -> str:
    return blue if blue == green else f"{blue} -> {green}"
