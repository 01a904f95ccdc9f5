"""ADBC as a reader has it, in an environment of its own: `... ADDRESS PASSWORD`, then JSON by lines."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow as pa
from adbc_driver_flightsql import ConnectionOptions, DatabaseOptions

ADDRESS, PASSWORD = sys.argv[1:]
AS_OF = f"{ConnectionOptions.RPC_CALL_HEADER_PREFIX.value}twinlake-as-of"


@contextmanager
def connected(
    user: str = "analyst", password: str = PASSWORD, as_of: str = "", ca: str = "", name: str = "",
    seconds: float = 0,
) -> Iterator[Any]:  # fmt: skip
    options = {"username": user, "password": password}
    if ca:
        with open(ca) as file:
            options[DatabaseOptions.TLS_ROOT_CERTS.value] = file.read()
    if name:
        options[DatabaseOptions.TLS_OVERRIDE_HOSTNAME.value] = name
    for of in ("FETCH", "QUERY", "UPDATE") if seconds else ():
        options[getattr(DatabaseOptions, f"TIMEOUT_{of}").value] = str(seconds)
    with flight_sql.connect(ADDRESS, db_kwargs=options, autocommit=True) as connection:
        if as_of:
            connection.adbc_connection.set_options(**{AS_OF: as_of})
        yield connection


def rows(sql: str, parameters: list[Any] | None = None, **how: Any) -> list[list[Any]]:
    with connected(**how) as connection, connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [list(row) for row in cursor.fetchall()]


def facts(sql: str, **how: Any) -> Any:
    """What is known of the rows."""
    with connected(**how) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return json.loads(cursor.fetch_record_batch().schema.metadata[b"twinlake"])


def arrow(sql: str, **how: Any) -> str:
    with connected(**how) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return stream(cursor.fetch_arrow_table())


def columns(sql: str, **how: Any) -> str:
    """Before the statement is computed."""
    with connected(**how) as connection, connection.cursor() as cursor:
        return stream(cursor.adbc_execute_schema(sql).empty_table())


def stream(table: Any) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as to:
        to.write_table(table)
    return base64.b64encode(sink.getvalue()).decode()


def bound(sql: str, sets: str, **how: Any) -> str:
    """The statement over each row of an Arrow stream."""
    table = pa.ipc.open_stream(base64.b64decode(sets)).read_all()
    with connected(**how) as connection, connection.cursor() as cursor:
        cursor.execute(sql, table)
        return stream(cursor.fetch_arrow_table())


def prepared(sql: str) -> dict[str, Any]:
    """One statement, prepared once and run with other values."""
    with connected() as connection, connection.cursor() as cursor:
        known = cursor.adbc_prepare(sql)
        found = []
        for value in ("r1", "r2", None):
            cursor.execute(sql, (value,))
            found.append([list(row) for row in cursor.fetchall()])
        return {"parameters": len(known), "found": found}


def described(table: str, **how: Any) -> str:
    with connected(**how) as connection:
        return stream(connection.adbc_get_table_schema(table, db_schema_filter="serve").empty_table())


def types_of(table: str, **how: Any) -> dict[str, str]:
    """Spark's names of the types of a table's columns, as they are listed."""
    with connected(**how) as connection:
        objects = connection.adbc_get_objects(
            depth="all", db_schema_filter="serve", table_name_filter=table
        ).read_all().to_pylist()  # fmt: skip
    (found,) = (schema["db_schema_tables"] for schema in objects[0]["catalog_db_schemas"])
    return {column["column_name"]: column["xdbc_type_name"] for column in found[0]["table_columns"]}


def counted(sql: str) -> int:
    """How many rows come, piece by piece."""
    with connected() as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return sum(batch.num_rows for batch in cursor.fetch_record_batch())


def looped(sql: str, values: list[Any], seconds: float) -> list[Any]:
    """What a statement finds for these values, again and again on one connection: each release with the rows
    that it was seen with."""
    found: dict[int, list[Any]] = {}
    until, count = time.monotonic() + seconds, 0
    with connected() as connection, connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute(sql, pa.table({"a": values}))
            read = cursor.fetch_record_batch()
            release = json.loads(read.schema.metadata[b"twinlake"])["release"]
            rows = [[*row.values()] for row in read.read_all().to_pylist()]
            if rows not in found.setdefault(release, []):
                found[release].append(rows)
            count += 1
    return [count, found]


def listed(**how: Any) -> dict[str, Any]:
    with connected(**how) as connection:
        objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        some = connection.adbc_get_objects(
            depth="tables", db_schema_filter="serve", table_name_filter="latest%"
        ).read_all().to_pylist()  # fmt: skip
        return {
            "catalogs": [one["catalog_name"] for one in objects],
            "tables": tables(objects), "some": sorted(tables(some)),
            "types": connection.adbc_get_table_types(),
            "schema": stream(
                connection.adbc_get_table_schema("latest_order", db_schema_filter="serve").empty_table()
            ) if "serve.latest_order" in tables(objects) else "",
            "named": {
                column["column_name"]: column["xdbc_type_name"]
                for catalog in objects
                for schema in catalog["catalog_db_schemas"]
                for table in schema["db_schema_tables"]
                for column in table["table_columns"] or ()
                if (schema["db_schema_name"], table["table_name"]) == ("serve", "latest_order")
            },
            "info": connection.adbc_get_info()["vendor_name"],
        }  # fmt: skip


def tables(objects: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {
        f"{schema['db_schema_name']}.{table['table_name']}": [
            column["column_name"] for column in table["table_columns"] or ()
        ]
        for catalog in objects
        for schema in catalog["catalog_db_schemas"]
        for table in schema["db_schema_tables"]
    }


def tools(sql: str) -> dict[str, Any]:
    """The rows that pandas, polars and DuckDB have."""
    import duckdb
    import pandas
    import polars

    with connected() as connection:
        of_pandas = pandas.read_sql(sql, connection)
        of_polars = polars.read_database(sql, connection)
        with connection.cursor() as cursor:
            cursor.execute(sql)
            of_duckdb = duckdb.from_arrow(cursor.fetch_record_batch()).order("region").fetchall()
    return {
        "pandas": [list(row) for row in of_pandas.itertuples(index=False)],
        "polars": [list(row) for row in of_polars.rows()],
        "duckdb": [list(row) for row in of_duckdb],
    }


def engine(more: str = "") -> Any:
    from sqlalchemy import create_engine

    host = ADDRESS.removeprefix("grpc://")
    return create_engine(f"adbc+flightsql://{host}?tls=false&username=analyst&password={PASSWORD}{more}")


def reflected(table: str) -> dict[str, Any]:
    """What SQLAlchemy's dialect for ADBC finds and reads."""
    from sqlalchemy import MetaData, Table, func, inspect, select

    one = engine("&header.twinlake-listing=sqlalchemy")
    inspector = inspect(one)
    whole = MetaData(schema="serve")
    whole.reflect(one)
    found = Table(table, MetaData(), schema="serve", autoload_with=one)
    query = select(func.count()).select_from(found).where(found.c.region == "r1")
    with one.connect() as connection:
        counted = connection.execute(query).scalar()
    return {
        "schemas": inspector.get_schema_names(),
        "tables": inspector.get_table_names("serve"), "views": inspector.get_view_names("serve"),
        "whole": [*whole.tables],
        "has": [inspector.has_table(name, "serve") for name in (table, f"{table}_valid", "nothing")],
        "columns": {column.name: type(column.type).__name__ for column in found.columns},
        "inspected": [column["name"] for column in inspector.get_columns(table, "serve")],
        "keys": inspector.get_pk_constraint(table, "serve")["constrained_columns"],
        "counted": counted,
    }  # fmt: skip


def named(table: str) -> list[Any]:
    """The same without the header: a table that is named."""
    from sqlalchemy import MetaData, Table, inspect

    one = engine()
    found = Table(table, MetaData(), schema="serve", autoload_with=one)
    return [[column.name for column in found.columns], inspect(one).get_table_names("serve")]


def cancelled(sql: str, after: float) -> dict[str, Any]:
    with connected() as connection, connection.cursor() as cursor:
        threading.Timer(after, cursor.adbc_cancel).start()
        begun = time.monotonic()
        try:
            cursor.execute(sql)
            cursor.fetchall()
            said = ""
        except Exception as error:
            said = str(error)
        return {"said": said, "seconds": time.monotonic() - begun}


KEPT: dict[str, Any] = {}


def keep(sql: str, user: str = "analyst") -> None:
    """A connection with a statement that is prepared, for `kept`."""
    KEPT["connection"] = flight_sql.connect(
        ADDRESS, db_kwargs={"username": user, "password": PASSWORD}, autocommit=True
    )
    KEPT["cursor"], KEPT["sql"] = KEPT["connection"].cursor(), sql
    KEPT["cursor"].adbc_prepare(sql)


def kept(value: Any) -> list[list[Any]]:
    KEPT["cursor"].execute(KEPT["sql"], (value,))
    return [list(row) for row in KEPT["cursor"].fetchall()]


def refused(name: str) -> str:
    """What is said of what only a database that writes has."""
    with connected() as connection, connection.cursor() as cursor:
        try:
            if name == "ingest":
                cursor.adbc_ingest("mine", pa.table({"a": [1]}))
            elif name == "update":
                cursor.executemany("DELETE FROM orders WHERE order_id = ?", [(1,)])
            else:
                connection.adbc_connection.set_autocommit(False)
        except Exception as error:
            return str(error)
    return ""


CALLED: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        rows, facts, arrow, columns, bound, prepared, described, types_of, counted, looped, listed, tools,
        reflected, named, cancelled, keep, kept, refused,
    )
}  # fmt: skip


def said(error: BaseException | None) -> Iterator[str]:
    """With what has failed before it: to close a statement is a call of its own."""
    while error:
        yield str(error)
        error = error.__context__


def plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal | datetime.datetime | datetime.date | bytes):
        return str(value)
    return value.item()  # of numpy's


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = {"found": CALLED[asked.pop("do")](**asked)}
        except Exception as error:
            answer = {"error": " after ".join(said(error)), "kind": type(error).__name__}
        print(json.dumps(answer, default=plain), flush=True)
