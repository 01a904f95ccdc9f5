"""Pinned: what a version shows at its pin, as one side of a diff."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from twinlake.base import quote
from twinlake.difference.diff import Side
from twinlake.kinds.equality import scale_of
from twinlake.lake.catalog.maintained_version import Computed, LogView, Readable, as_computed
from twinlake.lake.catalog.version import Pin

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def side(opened: Readable, pin: Pin) -> Side:
    """The pinned view without what the watermark decides, its doubles with their scales."""
    timeless = opened.definition.timeless
    view = opened.view(pin)
    doubles = tuple(name for name, type_ in view.dtypes if type_ in ("double", "float"))
    if doubles:
        view = opened.view(pin, scaled=doubles)
    scales = {name: scale_of(name) for name in doubles if scale_of(name) in view.columns}
    return Side(rows=view.select(*timeless, *scales.values()), scales=scales)


def exact_side(opened: Readable, pin: Pin) -> Side:
    """The same, its doubles without scales, so that they compare exactly: for two moments of one version,
    where many differences that each are forgiven would add up.
    """
    return Side(rows=opened.view(pin).select(*opened.definition.timeless))


def only(side: Side, keys: DataFrame) -> Side:
    """The rows of a side that have one of these keys; NULL is one, too."""
    from pyspark.sql import functions as F

    named, on = _same_keys(keys)
    # with the hint Spark takes the join down below the grouping, so that no other group is merged
    return Side(rows=side.rows.join(F.broadcast(named), on, "left_semi"), scales=side.scales)


def without(rows: DataFrame, keys: DataFrame) -> DataFrame:
    """The rows that have none of these keys, however many those are."""
    named, on = _same_keys(keys)
    return rows.join(named, on, "left_anti")


def _same_keys(keys: DataFrame) -> tuple[DataFrame, Column]:
    """The keys by names that no row has, and that a row has one of them."""
    from pyspark.sql import functions as F

    named = keys.toDF(*(f"touched_{index}" for index in range(len(keys.columns))))
    on = reduce(
        and_,
        (F.col(quote.name(key)).eqNullSafe(F.col(name))
         for key, name in zip(keys.columns, named.columns, strict=True)),
    )  # fmt: skip
    return named, on


def computed_at(opened: Readable, at: Pin) -> tuple[Computed | LogView, Pin]:
    """The version as the logs alone make it, at the position and watermarks of another pin.

    A topic that the other one does not read is taken to the end of its log.
    """
    return as_computed(opened), _pin(opened, at)


def _pin(opened: Readable, at: Pin) -> Pin:
    version = opened.version
    position = {topic: at.position.get(topic, opened.logs[topic].end()) for topic in version.topics}
    reads = opened.reads.items() if isinstance(opened, LogView) else ()
    return Pin(
        version=version, position=position, watermarks=at.watermarks, clocks=at.clocks,
        reads={name: _pin(read, at) for name, read in reads},
    )  # fmt: skip
