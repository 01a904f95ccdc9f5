"""Owns the rows over which both engines evaluate an expression: each type's hard values, each beside each."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

NAN, INF = float("nan"), float("inf")
_TINIEST, _LARGEST = 5e-324, 1.7976931348623157e308
TEXTS = [
    None, "", "a", "A", "abc", "Straße", "ǅ", "İstanbul", "ΌΔΟΣ", "naïve", "e\u0301a", "👩‍🚀x", "\U00010400z",
    " a ", "\ta\n", "a\0b", "\u00a0a\u2003", "aXbXc", "X", "a,b,,c", "%_\\", "Zürich 2026", "ﬁn",
    "日本語 text",
]  # fmt: skip
NUMBERS = [
    None, "", "0", "7", "-7", "+7", " 12 ", "12.7", "-0.005", "1e3", "1E-3", "abc", "NaN", "Infinity",
    "1_000", "0x1F", "007", "2147483648", "9223372036854775808", "123456789012345678901234567890", ".5", "5.",
    "1.005", "true", "No", "\t8", "8\u00a0", "1,5", "-", "1d",
]  # fmt: skip
TIMES = [
    None, "", "2026-01-31", "2026-02-30", "2024-02-29", "2026-1-5", "2026", "2026-01-31 12:34:56",
    "2026-01-31T12:34:56.789", "2026-01-31 24:00:00", "2026-01-31T12:34:56Z", "2026-01-31T12:34:56+02:00",
    "0001-01-01", "0000-01-01", "9999-12-31 23:59:59.999999", "10000-01-01", " 2026-01-31 ", "nothing",
    "2026-01-31 12:34", "2026-01-31T", "12:34:56", "2026-13-01", "epoch", "2026-06-31",
]  # fmt: skip
_DATES = [
    None, date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1899, 12, 31), date(1969, 12, 31),
    date(1970, 1, 1), date(2000, 2, 29), date(2023, 1, 31), date(2024, 2, 29), date(2024, 12, 30),
    date(2026, 1, 1), date(2026, 3, 29), date(2026, 11, 26), date(9999, 12, 31),
]  # fmt: skip
_MOMENTS = [
    None, datetime(1, 1, 1), datetime(1582, 10, 10, 1), datetime(1899, 12, 31, 23, 59, 59, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1), datetime(2000, 2, 29, 12),
    datetime(2024, 1, 31, 0, 0, 0, 500_000), datetime(2024, 2, 29, 23, 59, 59),
    datetime(2026, 3, 29, 0, 59, 59), datetime(2026, 3, 29, 1),
    datetime(2026, 10, 25, 0, 30), datetime(2026, 10, 25, 1, 30, 0, 123_456),
    datetime(2037, 12, 31, 22), datetime(2100, 7, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999),
]  # fmt: skip
_DOUBLES = [
    None, 0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 1.005, 2.675, 100.0, 1e15, 9007199254740993.0, 1e22,
    -1e300, _LARGEST, _TINIEST, 1e-7, 9.223372036854775e18, 2147483647.9, NAN, INF, -INF, 1 / 3,
]  # fmt: skip


def _decimals(precision: int, scale: int) -> list[Decimal | None]:
    """0, ones, halves, thirds, and what has as many digits as fit."""
    largest = 10**precision - 1
    small = [
        0,
        1,
        -1,
        5,
        -5,
        7,
        15,
        25,
        45,
        99,
        100,
        101,
        150,
        -250,
        333,
        12345,
        3 * 10**scale,
        -2 * 10**scale,
    ]
    units = [*small, 10**precision // 3, largest // 2, largest, -largest]
    return [None, *(Decimal(f"{one}E-{scale}") for one in units if abs(one) <= largest)]


def _values() -> dict[str, tuple[pa.DataType, str, list[Any]]]:
    """Name -> Arrow's type, Spark's, the values. A second column of each has `2` at its name's end."""
    utc = pa.timestamp("us", tz="UTC")
    return {
        "bo": (pa.bool_(), "boolean", [None, True, False]),
        "y": (pa.int8(), "tinyint", [None, 0, 1, -1, 2, 7, 100, 127, -128]),
        "h": (pa.int16(), "smallint", [None, 0, 1, -1, 3, 300, 32767, -32768]),
        "i": (pa.int32(), "int", [None, 0, 1, -1, 2, -2, 5, 7, 9, 32, -100, 65536, 2**31 - 1, -(2**31)]),
        "l": (pa.int64(), "bigint", [None, 0, 1, -1, 3, -7, 10**10, 2**53 + 1, 2**63 - 1, -(2**63), 2**62]),
        "f": (pa.float32(), "float", [None, 0.0, -0.0, 1.0, -1.5, 0.1, 3.4e38, NAN, INF, -INF, 16777216.0]),
        "x": (pa.float64(), "double", _DOUBLES),
        "d": (pa.decimal128(10, 2), "decimal(10,2)", _decimals(10, 2)),
        "e": (pa.decimal128(38, 18), "decimal(38,18)", _decimals(38, 18)),
        "w": (pa.decimal128(38, 0), "decimal(38,0)", _decimals(38, 0)),
        "g": (pa.decimal128(20, 8), "decimal(20,8)", _decimals(20, 8)),
        "q": (pa.decimal128(4, 4), "decimal(4,4)", _decimals(4, 4)),
        "k": (pa.decimal128(5, 1), "decimal(5,1)", _decimals(5, 1)),
        "s": (pa.string(), "string", TEXTS),
        "ns": (pa.string(), "string", NUMBERS),
        "ts": (pa.string(), "string", TIMES),
        "b": (pa.binary(), "binary", [None, b"", b"a", b"\x00", b"\xff\xfe", b"\\x41", "é".encode(), b"abc"]),
        "t": (utc, "timestamp", [it and it.replace(tzinfo=UTC) for it in _MOMENTS]),
        "da": (pa.date32(), "date", _DATES),
        "ai": (pa.list_(pa.int32()), "array<int>", [None, [], [1], [None], [3, 1, 2], [1, None, 1], [7]]),
        "au": (
            pa.list_(pa.string()), "array<string>",
            [None, [], ["a"], [None], ["b", "", "a"], ["é", "z", "e\u0301"], ["a", None, "a"]],
        ),
        "ax": (pa.list_(pa.float64()), "array<double>", [None, [], [NAN, 1.0], [0.0, None], [INF, -INF]]),
        "m": (
            pa.map_(pa.string(), pa.int32()), "map<string,int>",
            [None, [], [("a", 1)], [("a", None), ("b", 2)], [("", 0), ("é", 5)]],
        ),
        "st": (
            pa.struct([("City", pa.string()), ("n", pa.int32()), ("at", utc)]),
            "struct<City:string,n:int,at:timestamp>",
            [
                None, {"City": "Wien", "n": 1, "at": datetime(2026, 1, 1, tzinfo=UTC)},
                {"City": None, "n": None, "at": None},
            ],
        ),
    }  # fmt: skip


VALUES = _values()
TYPES = {f"{name}{end}": spark for name, (_, spark, _) in VALUES.items() for end in ("", "2")}
"""Column -> Spark's type."""


def table() -> pa.Table:
    """A row for each pair of places, so that each value of a column is beside each of every second column."""
    columns: dict[str, pa.Array] = {}
    size = max(len(values) for _, _, values in VALUES.values())
    places = list(product(range(size), range(size)))
    for name, (type_, _, values) in VALUES.items():
        first = [values[one % len(values)] for one, _ in places]
        second = [values[other % len(values)] for _, other in places]
        columns[name], columns[f"{name}2"] = pa.array(first, type_), pa.array(second, type_)
    return pa.table({"row": pa.array(range(len(places)), pa.int32()), **columns})


def write(folder: Path) -> Path:
    """The rows as a Parquet file, which both engines read."""
    file = folder / "hostile.parquet"
    pq.write_table(table(), file, coerce_timestamps="us")
    return file
