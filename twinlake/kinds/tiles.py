"""Owns tiles: the cells of time that hopping windows are made of, and which windows a tile is in.

A tile is as long as `size` and `every` have in common, so that no window begins or ends within one. States
are stored by tile; whoever reads them puts each into its windows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from twinlake.base import quote
from twinlake.base.times import format_duration
from twinlake.kinds.grid import micros
from twinlake.kinds.windows import Hopping, Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def in_tiles(window: Hopping) -> Hopping:
    """The same windows, stored by tile."""
    return _by_rules_of(window, replace(window))


def one_each(window: Hopping) -> Hopping:
    """Windows of one tile each, over the same tiles."""
    tile = format_duration(window.grid.size)
    return _by_rules_of(window, replace(window, size=tile, every=tile))


def _by_rules_of(window: Hopping, made: Hopping) -> Hopping:
    """With the rules of its zone by which the rows of the other one were cut."""
    object.__setattr__(made, "offsets", window.offsets)
    return made


def short_tiles(window: Hopping) -> tuple[str, str]:
    """What it costs that `size` is no whole multiple of `every`, and the remedy."""
    tile, number = format_duration(window.grid.size), window.length // window.grid.size
    why = (
        f"size {window.size!r} is no whole multiple of every {window.every!r}: rows are stored by {tile}, as "
        f"in tumbling windows of that size, and each window is read from {number} of them"
    )
    return why, "let `every` divide `size`; rows are stored by `every` then"


def starts_sql(window: Window, tile: str) -> str:
    """An array of timestamps: the starts of the windows that hold the tile with this start (microseconds)."""
    starts, tiles = window.starts, window.grid
    if tiles.size == starts.size:
        return starts.before_sql(tile, window.hops)
    begun = starts.before_sql(starts.cell_sql(tile), window.hops)
    ended = tiles.moved_sql(tile, -(window.length // tiles.size))
    # as many have begun by then as a time can be in; the first of them may have ended
    return f"filter({begun}, _start -> unix_micros(_start) > {ended})"


def spread(states: DataFrame, window: Window, start: str) -> DataFrame:
    """The states of tiles, each once for every window that it is in: the column `start` has that instead of
    the tile. They are not merged by window."""
    from pyspark.sql import functions as F

    starts = starts_sql(window, f"unix_micros({quote.name(window.grid.column)})")
    columns = [
        F.expr(f"explode({starts})").alias(start) if name == window.grid.column else F.col(quote.name(name))
        for name in states.columns
    ]
    return states.select(*columns)


def gathered_sql(relation: str, keys: tuple[str, ...]) -> str:
    """What follows FROM to read a relation of tiles with the rows of a key together.

    They are few now: after `explode` each of them would be exchanged once for every window.
    """
    return f"(SELECT /*+ REPARTITION({quote.names(keys)}) */ * FROM {relation})" if keys else relation


def spread_sql(window: Window, relation: str, start: str) -> str:
    """What follows FROM to read the same of a relation, the tile beside it.

    The condition holds for every row. It says of a range of windows in which range their tiles are, which
    nobody sees through `explode`: the rule `twinlake.lake.Ranges` has it from there.
    """
    tile, begin = quote.name(window.grid.column), quote.name(start)
    starts = starts_sql(window, f"unix_micros({tile})")
    longest = micros(window.length + window.grid.slack)
    return (
        f"(SELECT * FROM (SELECT *, explode({starts}) AS {begin} FROM {relation})\n"
        f"WHERE {begin} <= {tile} AND unix_micros({begin}) > unix_micros({tile}) - {longest}L)"
    )
