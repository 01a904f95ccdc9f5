"""The record id (epoch, partition, offset) of a record, and the columns that carry it through Spark."""

from __future__ import annotations

KEY = ("_epoch", "_partition", "_offset")
"""Identify a record in every relation that is read from a log; every order ends in them."""
TIMESTAMP, INGESTED_AT = "_timestamp", "_ingested_at"
"""When Kafka appended the record to its topic, and when its batch was added to the log."""
COLUMNS = (("_epoch", "int"), ("_partition", "int"), ("_offset", "bigint"), (TIMESTAMP, "timestamp"))
"""(name, Spark type) of what every row read from a log carries through all steps of a definition."""
NAMES = tuple(name for name, _ in COLUMNS)
BATCH = "_batch"
"""The log's batch that a record entered by: where its verdict was not valid at first, a later one's."""
READ = (*COLUMNS, (INGESTED_AT, "timestamp"))
"""What expressions of a definition can name beside the event's own fields."""
FROM_LOG = tuple(f"{name.removeprefix('_')} AS {name}" for name, _ in READ)
"""The log stores them without the underscore: there no event's field can be in their way."""
