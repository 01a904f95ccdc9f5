"""Owns a connection to DuckDB: the settings under which translated SQL means what Spark's meant."""

from __future__ import annotations

from pathlib import Path

import duckdb

NAME = f"DuckDB {duckdb.__version__}"
_SETTINGS = {
    # Spark's timestamp is read as DuckDB's TIMESTAMP, microseconds since 1970 in UTC
    "TimeZone": "'UTC'",
    "Calendar": "'gregorian'",
    # Spark orders NULL first where it is asked to order ascending; translated SQL says so at each place
    "default_null_order": "'nulls_last'",
    "integer_division": "false",
    "error_on_division_by_zero": "true",
    "scalar_subquery_error_on_multiple_rows": "true",
    # a rule that drops what it takes for equal may drop a guard
    "preserve_insertion_order": "false",
}


def connect(
    memory_mb: int = 1024, threads: int = 1, temporary: Path | None = None
) -> duckdb.DuckDBPyConnection:
    """A database in memory that fetches nothing from the network and writes nowhere but in `temporary`.

    Beyond `memory_mb` it raises duckdb.OutOfMemoryException, or with a folder `temporary` uses that first.
    """
    connection = duckdb.connect(
        config={
            "memory_limit": f"{memory_mb}MB",
            "threads": threads,
            "temp_directory": str(temporary) if temporary else "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
        }
    )
    for name, value in _SETTINGS.items():
        connection.execute(f"SET {name} = {value}")
    return connection
