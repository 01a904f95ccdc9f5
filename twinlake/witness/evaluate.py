"""Answers a question in this process: evaluates the definition, compares, and says why where it cannot."""

from __future__ import annotations

import time
from dataclasses import replace

import duckdb

from twinlake.witness.answer import FAILED, GONE, NOT_WITNESSED, Answer, Compared
from twinlake.witness.compare import Outcome, compare
from twinlake.witness.database import ENGINE, Database, is_gone, opened
from twinlake.witness.kinds.all import KINDS
from twinlake.witness.kinds.late import late
from twinlake.witness.question import Limits, Question
from twinlake.witness.refused import Refused, one_line, raised
from twinlake.witness.result import Asked, Result

_BY_DATA = (
    duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException, duckdb.DataError,
)  # fmt: skip
"""What DuckDB raises for a value: Spark has shown the rows, so the engines differ in what they refuse."""


def evaluate(question: Question, limits: Limits) -> Answer:
    """The answer; a question that the witness has no answer to says why."""
    began = time.process_time()
    answer = _answer(question, limits)
    return replace(answer, cpu_s=round(time.process_time() - began, 3), engine=ENGINE)


def _answer(question: Question, limits: Limits) -> Answer:
    try:
        with opened(question, limits) as database:
            return _of(question, database)
    except Refused as error:
        return _refused(question, error.words, error.expression)
    except (duckdb.OutOfMemoryException, MemoryError):
        why = f"it needs more than {limits.memory_mb} MB"
        return Answer(table=question.table, verdict=NOT_WITNESSED, why=why)
    except duckdb.Error as error:
        if found := raised(str(error)):
            return _refused(question, f"{found[0]} ({found[1]})", found[0])
        if is_gone(error, question):
            return Answer(table=question.table, verdict=NOT_WITNESSED, why=GONE)
        line = one_line(error)
        if isinstance(error, _BY_DATA):
            why = f"{ENGINE} refuses a value: {line}"
            return Answer(table=question.table, verdict=NOT_WITNESSED, why=why)
        return Answer(table=question.table, verdict=FAILED, why=line)


def _refused(question: Question, why: str, expression: str) -> Answer:
    return Answer(table=question.table, verdict=NOT_WITNESSED, why=why, refused=expression)


def _of(question: Question, database: Database) -> Answer:
    kind = KINDS.get(str(question.definition.get("kind")))
    if kind is None:
        raise Refused(f"kind {question.definition.get('kind')}", "the witness does not know this kind")
    result = kind(Asked(database, question, question.definition))
    shown, types = database.rows("_shown_by_spark", question.shown)
    outcome = compare(database, result, shown, types)
    return replace(_said(question, database, result, outcome), late=_late(question, database))


def _late(question: Question, database: Database) -> Compared | None:
    """The view of what came late, where there is one; that the witness cannot tell is a line like another."""
    if question.late is None:
        return None
    try:
        result = late(Asked(database, question, question.definition))
        shown, types = database.rows("_late_by_spark", question.late)
        return compare(database, result, shown, types, "_late").rows
    except (Refused, duckdb.Error) as error:
        return Compared(verdict=NOT_WITNESSED, why=one_line(error))


def _said(question: Question, database: Database, result: Result, outcome: Outcome) -> Answer:
    rows: Compared = outcome.rows
    return Answer(
        table=question.table, verdict=rows.verdict, why=rows.why, rows=rows.rows, differing=rows.differing,
        differences=rows.differences, final=outcome.by_clocks, within_bound=outcome.within_bound,
        bounds={name: one.rule.bound for name, one in result.columns.items() if one.rule.bound},
        expressions_by_spark=question.stepped is not None, sql_hash=database.sql_hash,
    )  # fmt: skip
