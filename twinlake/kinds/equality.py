"""Owns what equal means, wherever two results of Twinlake are compared: certificates and releases.

Rows meet by key, and NULL equals NULL. Exact types compare exactly, sketches by their bytes. A double that
adds up compares within 1e-9 of the sum of the absolute values that went into it, which its state keeps: a
tolerance of the result itself would be none where positive and negative values cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

TOLERANCE = 1e-9
NUMBERS = ("decimal", "bigint", "int", "smallint", "tinyint", "double", "float")


def scale_of(column: str) -> str:
    """The column of a compared view with the scale of this double column."""
    return f"{column}__scale"


def is_number(type_: str) -> bool:
    return type_.split("(")[0] in NUMBERS


def has_order(type_: str) -> bool:
    """Whether values of the type can be sorted, and so be keys and ends; maps and variants cannot."""
    return not type_.startswith(("map<", "variant"))


def is_comparable(type_: str) -> bool:
    """Whether values of the type can be compared; maps and variants, and what holds one, cannot."""
    return "map<" not in type_ and "variant" not in type_


def same(left: Column, right: Column, types: tuple[str, str], scales: Sequence[Column] = ()) -> Column:
    """Whether the two values are equal; never NULL.

    `types` are the Spark types of left and right, `scales` the sums of absolute values of both sides or of
    the one that keeps them; without any, doubles compare exactly. Numbers of different types compare by
    value, all else by its text.
    """
    from pyspark.sql import functions as F

    if types[0] != types[1] and not all(map(is_number, types)):
        return left.cast("string").eqNullSafe(right.cast("string"))
    equal = left.eqNullSafe(right)
    if not scales:
        return equal
    scale = F.greatest(*scales) if len(scales) > 1 else scales[0]
    # a scale that is NaN or infinite forgives nothing: by Spark's order NaN <= NaN, and all is below infinity
    within = (scale < F.lit(float("inf"))) & (F.abs(left - right) <= F.lit(TOLERANCE) * scale)
    return equal | F.coalesce(within, F.lit(False))
