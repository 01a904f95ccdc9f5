"""Rows of one topic with values of every type that measures can be of: extremes, NULLs, ties, odd doubles."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST = datetime(1970, 1, 1, tzinfo=UTC)
NAN, INF = math.nan, math.inf
_DOUBLES: tuple[tuple[float, ...], ...] = (
    (0.1, -0.1, 3.3, 1e15), (1e15, 1e15 + 1, 1e15 + 2, 1e15 + 3.5), (-0.0, 0.0), (NAN, INF, -INF, -0.0, 1.5),
    (INF, -INF, 2.0), (1e308, -1e308, 1.7e308, 5.0), (1e308, -1e308, INF, 5.0), (0.1,), (-7.0, 7.0, 7.07),
    (1e-170, 3e-165, -2e-160, 0.0), (1e147, 4e147, -1e147, 1.0), (5e-324, -5e-324, 1e-310),
    (1.7976931348623157e308, -1.7976931348623157e308),
)  # fmt: skip
"""Those of one group are of one of these."""
_WIDE = (
    ("0.01", "1.50", "-1.50"), ("9" * 36 + ".99", "-" + "9" * 36 + ".99", "0.01"), ("9" * 36 + ".00",),
    ("25" + "0" * 34 + ".00", "33" + "3" * 34 + ".33"), ("10000000000000000.01", "10000000000000000.03"),
)  # fmt: skip
_DEEP = (("99999999." + "9" * 30, "-0." + "0" * 29 + "1"), ("0.5",))
_TEXTS = (("", "a", "A", "ab"), ("\0", "\u00df", "\U0001f600", "\uffff", "z"), ("b",))
_TIMES = (
    (datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 30, 1, 2, 3, 4, tzinfo=UTC), FIRST),
    tuple(FIRST + timedelta(seconds=20 * n, microseconds=n % 2) for n in range(-8, 9)),
)
_PAIRS = (
    ({"a": None, "b": "x"}, {"a": 1, "b": None}, {"a": 1, "b": ""}, {"a": None, "b": None}),
    ({"a": 0, "b": "q"},),
)
_ITEMS: Sequence[Sequence[Any]] = (
    (
        [],
        [{"name": "p", "n": 1}],
        [{"name": "p", "n": 2}, {"name": None, "n": None}, {"name": "q", "n": 2}],
    ),
)
_PALETTES: dict[str, tuple[pa.DataType, str, Sequence[Sequence[Any]]]] = {
    "tiny": (pa.int8(), "tinyint", ((-128, 127, 0), (1, 2, 3))),
    "small": (pa.int16(), "smallint", ((-32768, 32767, 1), (5,))),
    "i": (pa.int32(), "int", ((-(2**31), 2**31 - 1), (-1, 0, 1, 2, 7), (3, 4))),
    "b": (pa.int64(), "bigint", ((-(2**63), 2**63 - 1), (10**15, 10**15 + 1, 10**15 + 5), (-1, 0))),
    "d5": (pa.decimal128(5, 0), "decimal(5,0)", (("99999", "-99999"), ("1", "2"))),
    "d12": (pa.decimal128(12, 2), "decimal(12,2)", (("9999999999.99", "-9999999999.99"), ("0.01", "-1.00"))),
    "d19": (pa.decimal128(19, 4), "decimal(19,4)", (("9" * 15 + ".9999", "-0.0001"), ("1.5000", "2.2500"))),
    "d20": (pa.decimal128(20, 4), "decimal(20,4)", (("9" * 16 + ".9999",), ("1.5000", "-2.2500"))),
    "wide": (pa.decimal128(38, 2), "decimal(38,2)", _WIDE),
    "deep": (pa.decimal128(38, 30), "decimal(38,30)", _DEEP),
    "f": (pa.float32(), "float", ((0.5, -0.0, 0.0), (NAN, INF, 1.5), (3.4028234663852886e38, -1.0))),
    "x": (pa.float64(), "double", _DOUBLES),
    "s": (pa.string(), "string", _TEXTS),
    "y": (pa.binary(), "binary", ((b"", b"\0", b"\xff", b"\x7f"), (b"a", b"ab"))),
    "day": (pa.date32(), "date", ((date(1, 1, 1), date(9999, 12, 31)), (date(1970, 1, 1),))),
    "t": (pa.timestamp("us", "UTC"), "timestamp", _TIMES),
    "yes": (pa.bool_(), "boolean", ((True, False), (True,))),
    "pair": (pa.struct([("a", pa.int32()), ("b", pa.string())]), "struct<a:int,b:string>", _PAIRS),
    "list": (pa.list_(pa.int32()), "array<int>", (([], [1], [1, None], [1, 0], [None], [0, 9]), ([2],))),
    "items": (
        pa.list_(pa.struct([("name", pa.string()), ("n", pa.int32())])),
        "array<struct<name:string,n:int>>",
        _ITEMS,
    ),
}
TYPES: Mapping[str, str] = {"g": "int", **{name: type_ for name, (_, type_, _) in _PALETTES.items()}}
NUMBERS = ("tiny", "small", "i", "b", "d5", "d12", "d19", "d20", "wide", "f", "x")
ITEMS = ("tiny", "i", "b", "d12", "wide", "f", "x", "s", "y", "day", "t", "yes")
ORDERED = tuple(name for name in TYPES if name not in ("g", "items"))


def rows(spark: SparkSession, seed: int, groups: int = 80, most: int = 14) -> DataFrame:
    """Of each group, one of which is NULL, up to `most` records; their ids are in no order."""
    draw = random.Random(seed)
    arrays: dict[str, list[Any]] = {
        name: [] for name in (*TYPES, "_epoch", "_partition", "_offset", "_timestamp")
    }
    offset = 0
    for group in range(groups):
        palettes = {name: draw.choice(values) for name, (_, _, values) in _PALETTES.items()}
        nulls = draw.choice((0.0, 0.2, 0.6))
        for _ in range(draw.randint(1, most)):
            offset += 1
            arrays["g"].append(group or None)
            for name, (type_, _, _) in _PALETTES.items():
                value = None if draw.random() < nulls else draw.choice(palettes[name])
                is_decimal = pa.types.is_decimal(type_)
                arrays[name].append(Decimal(value) if is_decimal and value is not None else value)
            arrays["_epoch"].append(draw.randrange(2))
            arrays["_partition"].append(draw.randrange(3))
            arrays["_offset"].append(offset * 7919 % 100_003)
            arrays["_timestamp"].append(FIRST + timedelta(seconds=offset))
    types = {"g": pa.int32(), **{name: type_ for name, (type_, _, _) in _PALETTES.items()}}
    types |= {"_epoch": pa.int32(), "_partition": pa.int32(), "_offset": pa.int64()}
    types["_timestamp"] = pa.timestamp("us", "UTC")
    table = pa.table({name: pa.array(values, types[name]) for name, values in arrays.items()})
    return spark.createDataFrame(table)
