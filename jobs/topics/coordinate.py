"""The coordinate (epoch, partition, offset) of a record, and the columns that carry it through Spark."""

from __future__ import annotations

KEY = ("_epoch", "_partition", "_offset")
"""Identify a record in every relation that is read from a log; every order ends in them."""
COLUMNS = (("_epoch", "int"), ("_partition", "int"), ("_offset", "bigint"), ("_timestamp", "timestamp"))
"""(name, Spark type) of what every row read from a log carries beside the event's own fields."""
NAMES = tuple(name for name, _ in COLUMNS)
FROM_LOG = tuple(f"{name.removeprefix('_')} AS {name}" for name in NAMES)
"""The log stores them without the underscore: there no event's field can be in their way."""
