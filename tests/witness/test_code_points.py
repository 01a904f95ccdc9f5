"""All of Unicode, asked of both engines: what differs is what `rules/letters.py` lists, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinlake.witness.database import connect
from twinlake.witness.rules import letters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = [point for point in range(0x110000) if not 0xD800 <= point <= 0xDFFF]
ASKED = {
    "lower": ("lower(s)", "lower(s)"),
    "lower_inside": ("lower(concat('A', s, 'B'))", "lower('A' || s || 'B')"),
    "upper": ("upper(s)", "upper(s)"),
    "upper_inside": ("upper(concat('ά', s, 'b'))", "upper('ά' || s || 'b')"),
    "trim": ("trim(s)", "trim(s, ' ')"),
    "length": ("length(s)", "length(s)"),
    "blank": (r"s rlike '^\\s$'", r"regexp_full_match(s, '[\t\n\x0b\f\r ]')"),
    "digit": (r"s rlike '^\\d$'", "regexp_full_match(s, '[0-9]')"),
    "word": (r"s rlike '^\\w$'", "regexp_full_match(s, '[0-9A-Z_a-z]')"),
    "dot": ("s rlike '^.$'", r"regexp_full_match(s, '[^\n\r\x{85}\x{2028}\x{2029}]')"),
    **{
        name: (rf"s rlike '^\\p{{{name}}}$'", rf"regexp_full_match(s, '\p{{{name}}}')")
        for name in letters.CATEGORIES
    },
    "reverse": ("reverse(concat('a', s, 'b'))", "reverse('a' || s || 'b')"),
}
"""By name, Spark's expression and DuckDB's of the one character `s`."""
LISTED = {
    "lower": letters.LOWER, "lower_inside": letters.LOWER, "upper": letters.UPPER,
    "upper_inside": letters.UPPER, **letters.CATEGORIES,
}  # fmt: skip
SIGMA = 0x3A3
GRAPHEMES_FROM = 0x300


def _listed(name: str) -> set[int]:
    return {point for first, last in LISTED.get(name, ()) for point in range(first, last + 1)}


def _differing(points: Sequence[int], spark: SparkSession, folder: Path) -> dict[str, set[int]]:
    """By name, the code points that the engines answer differently."""
    from pyspark.sql import functions as F

    file = folder / "code_points.parquet"
    pq.write_table(pa.table({"point": pa.array(points, pa.int32()), "s": [chr(it) for it in points]}), file)
    shown = [F.expr(sql).alias(name) for name, (sql, _) in ASKED.items()]
    of_spark = spark.read.parquet(str(file)).select("point", "s", *shown).toArrow()
    connection = connect()
    connection.register("of_spark", of_spark)
    return {
        name: {
            point
            for (point,) in connection.sql(
                f'SELECT point FROM of_spark WHERE "{name}" IS DISTINCT FROM ({sql})'
            ).fetchall()
        }
        for name, (_, sql) in ASKED.items()
    }


def test_drawn_code_points_differ_only_where_it_is_listed(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    drawn = {*random.Random(seed).sample(ALL, 20_000), *range(GRAPHEMES_FROM)}
    points = sorted(drawn.union(*map(_listed, LISTED)))

    found = _differing(points, spark, tmp_path)

    reversed_otherwise = found.pop("reverse")
    assert min(reversed_otherwise) >= GRAPHEMES_FROM
    assert {name: found[name] - _listed(name) for name in found if found[name] - _listed(name)} == {}


@pytest.mark.faults
def test_all_code_points_differ_where_it_is_listed_and_nowhere_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = _differing(ALL, spark, tmp_path)

    reversed_otherwise = found.pop("reverse")
    assert min(reversed_otherwise) >= GRAPHEMES_FROM
    # of a capital sigma alone both say the same; between letters Spark looks at its neighbours
    assert found == {name: _listed(name) - ({SIGMA} if "lower" in name else set()) for name in found}
