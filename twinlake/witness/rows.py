"""Owns the rows that the witness finds of a definition, for whoever wants these and no comparison.

It works in the asker's process, and reads and writes files of one folder of its own alone: whoever asks puts
there what it is to read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import duckdb

from twinlake.witness.database import ENGINE, SETTINGS, Database, Types, connect
from twinlake.witness.kinds.all import KINDS
from twinlake.witness.kinds.late import late
from twinlake.witness.question import Question, Rows
from twinlake.witness.refused import Refused, one_line, raised
from twinlake.witness.result import SIZE, Asked, Result, part_of
from twinlake.witness.text import names
from twinlake.witness.types import identifier, text_literal

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a view shows: the columns that identify a row, all columns with their types, the rows as Python's
    values, one for each column; times are aware, in UTC."""

    keys: tuple[str, ...]
    types: Types
    rows: tuple[tuple[Any, ...], ...]
    sizes: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """Where that was asked for, of each column of doubles that adds up, by row: the sum of the sizes of what
    is added up, of which equal sums may differ by a billionth."""

    @property
    def names(self) -> list[str]:
        return list(self.types)


class Evaluator:
    """One engine for many questions, which are asked one after the other."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="twinlake-rows-")
        self._connection = connect()
        for setting in (
            *(f"GLOBAL {name} = {value}" for name, value in SETTINGS.items()),  # for each question's place
            f"allowed_directories = [{text_literal(self._folder.name + '/')}]",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self._connection.execute(f"SET {setting}")
        self._asked = 0

    @property
    def folder(self) -> str:
        """Where the files of questions may be; it is deleted at the end."""
        return self._folder.name

    def close(self) -> None:
        self._connection.close()
        self._folder.cleanup()

    def found(self, question: Question) -> Found:
        """What the definition shows of the question's logs and tables; its `shown` says nothing. Refused
        where the witness does not evaluate it, or a value of it."""
        return self._evaluated(question, _evaluate, _rows)

    def sized(self, question: Question) -> Found:
        """The same with `sizes`, for whoever compares two of them."""
        return self._evaluated(question, _evaluate, _sized)

    def types(self, question: Question) -> Types:
        """The columns of `found`, in its order; no row is computed."""
        return self._evaluated(question, _evaluate, _bound)

    def late(self, question: Question) -> Found:
        """The same of the view of what came late."""
        return self._evaluated(question, late, _rows)

    def write(self, question: Question, file: str) -> Rows:
        """What the definition shows as a Parquet file, for a question whose table reads it."""

        def written(database: Database, result: Result) -> Rows:
            types = _types(result)
            database.run(_copy(f"SELECT {names(types)} FROM ({result.sql})", file))
            return Rows(files=(file,), columns=tuple((name, one.spark) for name, one in types.items()))

        return self._evaluated(question, _evaluate, written)

    def copy(self, sql: str, file: str) -> None:
        """A statement's rows as a Parquet file."""
        self._connection.execute(_copy(sql, file))

    def _evaluated(
        self,
        question: Question,
        evaluate: Callable[[Asked], Result],
        use: Callable[[Database, Result], T],
    ) -> T:
        with self._database() as database, _answering():
            return use(database, evaluate(Asked(database, question, question.definition)))

    @contextmanager
    def _database(self) -> Iterator[Database]:
        """A place of its own for each question: to open an engine takes longer than most answers."""
        self._asked += 1
        schema = f"question_{self._asked}"
        connection = self._connection.cursor()
        try:
            connection.execute(f"CREATE SCHEMA {schema}; SET schema = '{schema}'")
            yield Database(connection)
            connection.execute(f"SET schema = 'main'; DROP SCHEMA {schema} CASCADE")
        finally:
            connection.close()


def value_of(value: Any) -> Any:
    """As the engine's client has it, with times in UTC, however deep inside."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if isinstance(value, list):
        return [value_of(one) for one in value]
    return {key: value_of(one) for key, one in value.items()} if isinstance(value, dict) else value


def _evaluate(asked: Asked) -> Result:
    kind = KINDS.get(str(asked.definition.get("kind")))
    if kind is None:
        raise Refused(f"kind {asked.definition.get('kind')}", "the witness does not know this kind")
    return kind(asked)


def _rows(database: Database, result: Result, beside: tuple[str, ...] = ()) -> Found:
    """With the columns `beside` behind those of the view."""
    types = _types(result)
    order = ", ".join(f"{identifier(name)} NULLS FIRST" for name in result.keys)
    ordered = f" ORDER BY {order}" if order else ""
    found = database.run(f"SELECT {names((*types, *beside))} FROM ({result.sql}){ordered}")
    rows = tuple(tuple(map(value_of, row)) for row in found)
    return Found(keys=result.keys, types=types, rows=rows)


def _sized(database: Database, result: Result) -> Found:
    added = [name for name, one in result.columns.items() if SIZE in one.rule.beside]
    found = _rows(database, result, tuple(part_of(name, SIZE) for name in added))
    shown = len(found.types)
    sizes = {name: tuple(row[shown + at] for row in found.rows) for at, name in enumerate(added)}
    return replace(found, rows=tuple(row[:shown] for row in found.rows), sizes=sizes)


def _bound(database: Database, result: Result) -> Types:
    types = _types(result)
    database.run(f"SELECT {names(types)} FROM ({result.sql}) LIMIT 0")
    return types


def _types(result: Result) -> Types:
    return {name: one.type for name, one in {**result.columns, **result.by_clocks}.items()}


def _copy(sql: str, file: str) -> str:
    return f"COPY ({sql}) TO {text_literal(file)} (FORMAT parquet)"


@contextmanager
def _answering() -> Iterator[None]:
    """What keeps the engine from an answer, as Refused."""
    try:
        yield
    except duckdb.Error as error:
        if found := raised(str(error)):
            raise Refused(*found) from error
        why, _, _ = one_line(error).partition(" LINE ")  # of SQL that nobody has written
        raise Refused(f"{ENGINE} refuses it", why) from error
