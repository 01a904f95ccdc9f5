"""Owns a connection to DuckDB, with the settings under which translated SQL means what Spark's meant, and
what runs in it for one question: its files, relations made of them, the record of statements."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import duckdb

from twinlake.witness.question import Limits, Rows
from twinlake.witness.refused import Refused
from twinlake.witness.types import Type, identifier, text_literal

Types = dict[str, Type]
"""By column of a relation, in order."""
_PATTERN = re.compile(r"[*?\[]")
ENGINE = f"DuckDB {duckdb.__version__}"
_OF_FILES = (duckdb.IOException, duckdb.PermissionException)
"""What DuckDB raises for a file that is not there, too: of that one it does not say so."""
SETTINGS = {
    # Spark's timestamp is read as DuckDB's TIMESTAMP, microseconds since 1970 in UTC
    "TimeZone": "'UTC'",
    "Calendar": "'gregorian'",
    # Spark orders NULL first where it is asked to order ascending; translated SQL says so at each place
    "default_null_order": "'nulls_last'",
    "integer_division": "false",
    "error_on_division_by_zero": "true",
    "scalar_subquery_error_on_multiple_rows": "true",
    "preserve_insertion_order": "false",
}


class Asking(Protocol):
    """A question of any sort."""

    @property
    def files(self) -> Sequence[str]:
        """All that may be read for it."""


class Database:
    """Reads these files and nothing else of this machine; every statement is a part of `sql_hash`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._statements = hashlib.sha256()
        self._files = 0

    @property
    def sql_hash(self) -> str:
        return self._statements.hexdigest()

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        self._statements.update(sql.encode() + b"\n")
        return self._connection.execute(sql).fetchall()

    def one(self, sql: str) -> tuple[Any, ...]:
        """The only row of a statement."""
        (found,) = self.run(sql)
        return found

    def texts(self, sql: str) -> tuple[tuple[str, ...], list[tuple[str | None, ...]]]:
        """Column names and rows of a statement whose columns are all text."""
        self._statements.update(sql.encode() + b"\n")
        found = self._connection.execute(sql)
        return tuple(column[0] for column in found.description or ()), found.fetchall()

    def view(self, name: str, sql: str) -> str:
        """A relation with this text, which is run whenever it is read; its quoted name."""
        self.run(f"CREATE VIEW {identifier(name)} AS {sql}")
        return identifier(name)

    def table(self, name: str, sql: str) -> str:
        """A relation with this text, which is run once; its quoted name."""
        self.run(f"CREATE TEMP TABLE {identifier(name)} AS {sql}")
        return identifier(name)

    def files(self, files: Sequence[str]) -> str | None:
        """A relation with all columns of Parquet files, by name; None for no files."""
        if not files:
            return None
        self._files += 1
        name = identifier(f"_files_{self._files}")
        listed = ", ".join(text_literal(_escaped(file)) for file in files)
        # it is no part of the record: the same question over other files has the same statements
        self._connection.execute(
            f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}], union_by_name = true,"
            " hive_partitioning = false)"
        )
        return name

    def columns(self, relation: str) -> dict[str, str]:
        """By name, the columns of a relation and DuckDB's types of them."""
        found = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        return {row[0]: row[1] for row in found}

    def fields(self, relation: str, column: str) -> set[str]:
        """The names of a struct's fields."""
        found = self._connection.execute(f"SELECT {identifier(column)} FROM {relation} LIMIT 0")
        return {name for name, _ in found.description[0][1].children}  # type: ignore[index]

    def rows(self, name: str, rows: Rows) -> tuple[str, Types]:
        """A relation with what Spark has written, each column as the type that it has there."""
        types = {column: Type.parse(text) for column, text in rows.columns}
        files = self.files(rows.files)
        if files is None:
            return self.view(name, f"SELECT {nothing(types)} WHERE false"), types
        shown = ", ".join(
            f"CAST({identifier(column)} AS {type_.duckdb}) AS {identifier(column)}"
            for column, type_ in types.items()
        )
        return self.view(name, f"SELECT {shown} FROM {files}"), types


def connect(memory_mb: int = 1024, threads: int = 1) -> duckdb.DuckDBPyConnection:
    """A database in memory that fetches nothing from the network and writes nowhere.

    Beyond `memory_mb` it raises duckdb.OutOfMemoryException.
    """
    connection = duckdb.connect(
        config={
            "memory_limit": f"{memory_mb}MB",
            "threads": threads,
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
        }
    )
    for name, value in SETTINGS.items():
        connection.execute(f"SET {name} = {value}")
    return connection


def is_gone(error: duckdb.Error, question: Asking) -> bool:
    """Whether it is of a file that was deleted since the question was asked."""
    return isinstance(error, _OF_FILES) and not all(map(os.path.exists, question.files))


@contextmanager
def opened(question: Asking, limits: Limits) -> Iterator[Database]:
    """A database that reaches the question's files and no others, and loads nothing."""
    connection = connect(memory_mb=limits.memory_mb, threads=limits.threads)
    try:
        # a pattern is allowed by itself, and so is what it finds
        paths = dict.fromkeys(name for file in question.files for name in (file, _escaped(file)))
        listed = ", ".join(map(text_literal, paths))
        for setting in (
            f"allowed_paths = [{listed}]",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            connection.execute(f"SET {setting}")
        yield Database(connection)
    finally:
        connection.close()


def _escaped(file: str) -> str:
    """The pattern that this file alone meets; Refused for a name that has none."""
    if _PATTERN.search(file) is None:
        return file
    if "\\" in file:
        raise Refused(f"file {file}", "its name is a pattern to the engine, and has a backslash")
    return _PATTERN.sub(lambda found: f"[{found[0]}]", file)


def nothing(types: Types) -> str:
    """The columns of a row of NULLs."""
    return ", ".join(f"CAST(NULL AS {type_.duckdb}) AS {identifier(name)}" for name, type_ in types.items())
