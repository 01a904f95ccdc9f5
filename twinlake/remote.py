"""Reading from Python: a table from the SQL server, as Arrow or as Spark's rows.

It asks as `twinlake query` does: it reads no file of the lake, and can only read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from twinlake.base import quote
from twinlake.base.errors import UsageError
from twinlake.config.settings import Services, Settings
from twinlake.reading import client, wire
from twinlake.reading.export_client import Batches, open_batches
from twinlake.reading.server_address import ELSEWHERE, named_server
from twinlake.services.supervise.record import check_sql_server_is_supervised

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

MOST_ROWS = 1_000_000
"""More is not read at once: `where` and `columns` ask for less, `read_batches` reads any number."""


@overload
def read(
    table: str, *, key: Mapping[str, Any] | None = None, min_position: str | None = None,
    min_offsets: str | None = None, wait_seconds: float | None = None, as_of: str | None = None,
    columns: Iterable[str] | None = None, where: str | None = None, home: str | Path | None = None,
    address: str | None = None, user: str | None = None, password: str | None = None,
    ca_file: str | Path | None = None, spark: None = None,
) -> pa.Table: ...  # fmt: skip
@overload
def read(
    table: str, *, key: Mapping[str, Any] | None = None, min_position: str | None = None,
    min_offsets: str | None = None, wait_seconds: float | None = None, as_of: str | None = None,
    columns: Iterable[str] | None = None, where: str | None = None, home: str | Path | None = None,
    address: str | None = None, user: str | None = None, password: str | None = None,
    ca_file: str | Path | None = None, spark: SparkSession,
) -> DataFrame: ...  # fmt: skip
def read(
    table: str, *, key: Mapping[str, Any] | None = None, min_position: str | None = None,
    min_offsets: str | None = None, wait_seconds: float | None = None, as_of: str | None = None,
    columns: Iterable[str] | None = None, where: str | None = None, home: str | Path | None = None,
    address: str | None = None, user: str | None = None, password: str | None = None,
    ca_file: str | Path | None = None, spark: SparkSession | None = None,
) -> pa.Table | DataFrame:  # fmt: skip
    """A view of the live release; with `as_of` ("release:3", "position:orders=120", or a time such as
    "2026-01-31T12:00:00Z") the table as it was.

    `where` is SQL over the view's columns. The SQL server is the one at `address` (`sql_url` of its
    services.json) with `user` and `password`, or $TWINLAKE_SQL_URL, _USER and _PASSWORD; else that of the
    data directory `home`, or $TWINLAKE_HOME. `ca_file` (or $TWINLAKE_SQL_CA_FILE) is PEM, who has signed the
    certificate of one on another machine, where no usual authority has. With `spark` the rows are a DataFrame
    of that session. With `key` (by key column its value, None for NULL; all of the key or a part) the rows
    with it are looked up, in milliseconds; with `min_position` ("orders=120") or `min_offsets`
    ("orders/0=1234", of records) once the table has passed them, waiting at most `wait_seconds`.
    TwinlakeError says what is wrong, as with more than MOST_ROWS rows, why, and what to do.
    """
    services, waiting = _server(home, address, user, password, ca_file)
    until = client.Until(min_position=min_position, min_offsets=min_offsets, wait_seconds=wait_seconds)
    if key is not None:
        if as_of is not None or where is not None:
            remedy = "leave them out, or give `where` without `key`"
            raise UsageError(f"{table} was not read", "`key` goes with neither `as_of` nor `where`", remedy)
        if not isinstance(key, Mapping):
            raise UsageError(
                f"{table} was not read", f"`key` is {key!r}", 'give a dict, like key={"region": "north"}'
            )
        given = {name: _as_text(value) for name, value in key.items()}
        rows = client.look_up_arrow(services, table, given, until, waiting)
        rows = rows if columns is None else rows.select(_named(columns))
        return rows if spark is None else spark.createDataFrame(rows)
    if until != client.AT_ONCE:
        raise UsageError(f"{table} was not read", "only a look-up waits for a position", "give a `key`")
    found = client.ask_arrow(services, _statement(table, columns, where), MOST_ROWS, as_of, waiting)
    if metadata(found)["truncated"]:
        why = f"it has more than {MOST_ROWS:,} rows"
        raise UsageError(f"{table} was not read", why, "ask for less with `where`, or take `read_batches`")
    return found if spark is None else spark.createDataFrame(found)


def read_batches(
    table: str, *, as_of: str | None = None, columns: Iterable[str] | None = None, where: str | None = None,
    home: str | Path | None = None, address: str | None = None, user: str | None = None,
    password: str | None = None, ca_file: str | Path | None = None,
) -> Batches:  # fmt: skip
    """The same rows, of any number, as an iterator of `pyarrow.RecordBatch`: one of about a megabyte is in
    memory at a time. All of them have been computed by then, at one release.

        with twinlake.read_batches("orders") as batches:
            for batch in batches: ...

    Whoever stops before the last one leaves the `with`, or calls `close`. See `Batches`.
    """
    services, waiting = _server(home, address, user, password, ca_file)
    return open_batches(services, _statement(table, columns, where), None, as_of, waiting)


def _statement(table: str, columns: Iterable[str] | None, where: str | None) -> str:
    sql = f"SELECT {_shown(columns)} FROM serve.{quote.name(table)}"
    return sql if where is None else f"{sql} WHERE {quote.condition(where)}"


def _server(
    home: str | Path | None,
    address: str | None,
    user: str | None,
    password: str | None,
    ca_file: str | Path | None,
) -> tuple[Services, client.Waiting]:
    ca = None if ca_file is None else str(ca_file)
    named = named_server(os.environ if home is None else {}, address, user, password, ca)
    if named is None:
        settings = Settings.of(os.environ if home is None else {"TWINLAKE_HOME": str(home)})
        waiting = client.Waiting(check=lambda: check_sql_server_is_supervised(settings))
        return settings.services(), waiting
    if home is not None:
        why = f"{home} names another SQL server than {address}"
        raise UsageError("home and address are both given", why, "leave out one of them")
    return named, client.Waiting(remedy=ELSEWHERE)


def _shown(columns: Iterable[str] | None) -> str:
    return "*" if columns is None else quote.names(_named(columns))


def _named(columns: Iterable[str]) -> list[str]:
    names = [columns] if isinstance(columns, str) else [*columns]  # a text is not the list of its letters
    if not names:
        raise UsageError("no column is named", "columns is empty", "leave it out for all of them")
    return names


def _as_text(value: Any) -> str | None:
    """A value of a key as a look-up takes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else str(value)


def metadata(found: pa.Table | Batches) -> dict[str, Any]:
    """What the server says of a table that was read: its release and, where asked for, its point in time."""
    return wire.facts_of(found.schema)
