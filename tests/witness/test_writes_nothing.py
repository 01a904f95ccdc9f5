"""Statements about files in a definition do nothing, had the list of expressions let them pass."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.witness.test_evaluate import DERIVED, LIMITS, TOTALS, ask, totals
from twinlake.witness.answer import NOT_WITNESSED
from twinlake.witness.database import opened
from twinlake.witness.evaluate import evaluate
from twinlake.witness.question import Question, ReadTable
from twinlake.witness.select import TranslatedSelect
from twinlake.witness.types import INT

STATEMENTS = (
    "COPY (SELECT 1) TO '{0}/copied.csv'",
    "COPY (SELECT 1) TO '{0}/copied.parquet' (FORMAT parquet)",
    "EXPORT DATABASE '{0}/exported'",
    "ATTACH '{0}/attached.db'",
    "ATTACH '{0}/attached.db' AS other; CREATE TABLE other.t AS SELECT 1",
    "INSTALL httpfs", "LOAD httpfs", "INSTALL '{0}/own.duckdb_extension'",
    "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT getenv('PATH')",
    "SET temp_directory = '{0}/spill'", "SET enable_external_access = true",
    "SET lock_configuration = false", "SET allowed_paths = ['{0}/copied.csv']",
    "PRAGMA enable_profiling = 'json'", "SET log_query_path = '{0}/log'",
)  # fmt: skip


def question(folder: Path, sql: str) -> Question:
    read = ReadTable(definition=TOTALS, shown=totals(folder))
    return Question(
        definition={**DERIVED, "sql": sql}, topics={}, shown=totals(folder), reads={"totals": read}
    )


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_definition_with_such_a_statement_has_no_answer(tmp_path: Path, statement: str) -> None:
    (tmp_path / "own").mkdir()
    sql = statement.format(tmp_path / "own")

    found = evaluate(question(tmp_path, sql), LIMITS)

    assert found.verdict == NOT_WITNESSED and found.refused, found
    assert not [*(tmp_path / "own").iterdir()]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_one_that_passed_the_list_would_be_refused_by_the_engine(tmp_path: Path, statement: str) -> None:
    (tmp_path / "own").mkdir()

    with opened(ask(tmp_path), LIMITS) as database, pytest.raises(duckdb.Error):
        database.run(statement.format(tmp_path / "own"))

    assert not [*(tmp_path / "own").iterdir()]


def test_a_select_that_passed_the_list_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    sql = f"SELECT 1; COPY (SELECT 1) TO '{tmp_path / 'own' / 'copied.csv'}'"
    passed = TranslatedSelect(sql=sql, columns={"place": INT}, approximate=frozenset())
    monkeypatch.setattr("twinlake.witness.kinds.derived.translate_select", lambda *_: passed)

    found = evaluate(question(tmp_path, sql), LIMITS)

    assert found.verdict != "equal" and not [*(tmp_path / "own").iterdir()], found
