"""A wrong sum of doubles differs, near the end of the doubles and in a Derived; a right one never does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.witness.test_evaluate import DERIVED, LIMITS, TOTALS, log_file, topic, write
from twinlake.witness.answer import DIFFERS, EQUAL, NOT_WITNESSED, Verdict
from twinlake.witness.evaluate import evaluate
from twinlake.witness.question import Question, ReadTable, Rows

GREATEST = 1.7976931348623157e308
NAN, INF = float("nan"), float("inf")
VALUES = pa.schema([("k", pa.string()), ("x", pa.float64())])
SHARES = pa.schema([("k", pa.string()), ("it", pa.float64())])


def of_measure(folder: Path, kind: str, values: Sequence[float], shown: float | None) -> Verdict:
    event = pa.struct(list(VALUES))
    events = [{"k": "a", "x": value} for value in values]
    rows = Rows(
        files=(write(folder, [{"k": "a", "it": shown}], SHARES),),
        columns=(("k", "string"), ("it", "double")),
    )
    definition = {
        **TOTALS, "columns": [["k", "k"], ["x", "x"]], "keys": ["k"],
        "measures": [["it", {"kind": kind, "of": "x"}]],
    }  # fmt: skip
    log = topic(log_file(folder, events, event), fields={"k": "string", "x": "double"})
    return evaluate(Question(definition=definition, topics={"orders": log}, shown=rows), LIMITS).verdict


@pytest.mark.parametrize(
    ("values", "shown", "verdict"),
    [
        ((GREATEST,), GREATEST, EQUAL), ((GREATEST,), None, EQUAL),  # rounding decides whether it leaves them
        ((GREATEST,), 1.0, DIFFERS), ((GREATEST,), -GREATEST, DIFFERS), ((GREATEST,), INF, DIFFERS),
        ((GREATEST,), NAN, DIFFERS), ((GREATEST, -GREATEST), 0.0, EQUAL),
        ((GREATEST, -GREATEST), GREATEST, DIFFERS), ((GREATEST, GREATEST), None, EQUAL),
        ((GREATEST, GREATEST), GREATEST, DIFFERS), ((GREATEST, INF), INF, EQUAL),
        ((GREATEST, INF), None, DIFFERS), ((GREATEST, INF), 1.0, DIFFERS),
        ((1.7976925e308, -5.0), 1.7976925e308, EQUAL), ((1.7976925e308, -5.0), 1.5e308, DIFFERS),
    ],
)  # fmt: skip
def test_near_the_end_of_the_doubles_a_sum_is_null_or_the_sum(
    tmp_path: Path, values: Sequence[float], shown: float | None, verdict: Verdict
) -> None:
    assert of_measure(tmp_path, "sum", values, shown) == verdict


@pytest.mark.parametrize(
    ("shown", "verdict"), [(GREATEST / 2, EQUAL), (None, EQUAL), (GREATEST, DIFFERS), (0.0, DIFFERS)]
)
def test_and_so_is_a_mean(tmp_path: Path, shown: float | None, verdict: Verdict) -> None:
    assert of_measure(tmp_path, "avg", (GREATEST, 0.0), shown) == verdict


def of_derived(
    folder: Path, sql: str, shown: float | None, values: Sequence[float | None] = (1e16, 1.0, -1e16, 3.0)
) -> Verdict:
    made = [{"k": f"k{number}", "x": value} for number, value in enumerate(values)]
    read = Rows(files=(write(folder, made, VALUES),), columns=(("k", "string"), ("x", "double")))
    rows = Rows(
        files=(write(folder, [{"k": "a", "it": shown}], SHARES),),
        columns=(("k", "string"), ("it", "double")),
    )
    definition = {**DERIVED, "columns": ["k", "it"], "keys": ["k"], "sql": sql, "reads": ["parts"]}
    reads = {"parts": ReadTable(definition=TOTALS, shown=read)}
    return evaluate(Question(definition=definition, topics={}, shown=rows, reads=reads), LIMITS).verdict


SIZE = 2e16 + 4
FORMS = {
    "sum(x)": 4.0, "avg(x)": 1.0, "-sum(x)": -4.0,
    "(sum(x) + sum(x))": 8.0, "sum(x) - avg(x)": 3.0, "sum(x) * 2.0D": 8.0, "sum(x) / count(x)": 1.0,
    "coalesce(sum(x), 0.0D)": 4.0, "sum(x) * sum(x)": 16.0, "CAST(sum(x) AS DOUBLE)": 4.0,
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_sum_in_a_derived_may_differ_by_a_share_of_its_size_and_no_more(tmp_path: Path, form: str) -> None:
    sql = f"SELECT 'a' AS k, {form} AS it FROM parts"
    size = SIZE**2 if form == "sum(x) * sum(x)" else SIZE

    assert of_derived(tmp_path, sql, FORMS[form]) == EQUAL
    assert of_derived(tmp_path, sql, FORMS[form] + 1e-11 * size) == EQUAL
    assert of_derived(tmp_path, sql, FORMS[form] + 1e-7 * size) == DIFFERS
    assert of_derived(tmp_path, sql, None) == DIFFERS


def test_what_cancels_is_found_to_be_wrong(tmp_path: Path) -> None:
    sql = "SELECT 'a' AS k, sum(x) AS it FROM parts"

    assert of_derived(tmp_path, sql, 1e-7, (0.5, -0.5)) == DIFFERS
    assert of_derived(tmp_path, sql, 1e-17, (0.5, -0.5)) == EQUAL
    assert of_derived(tmp_path, sql, 5e-324, (0.0, 0.0)) == EQUAL  # as near as doubles get


@pytest.mark.parametrize(
    "values", [(1e308, 1e308, -1e308), (INF, 1.0), (NAN, 1.0)], ids=["overflows", "infinite", "no number"]
)
def test_where_the_order_may_decide_everything_nothing_is_said(
    tmp_path: Path, values: Sequence[float]
) -> None:
    assert of_derived(tmp_path, "SELECT 'a' AS k, sum(x) AS it FROM parts", 7.0, values) == NOT_WITNESSED


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'a' AS k, sum(y) AS it FROM (SELECT k, sum(x) AS y FROM parts GROUP BY k)",
        "SELECT 'a' AS k, y AS it FROM (SELECT sum(x) AS y FROM parts)",
        "SELECT 'a' AS k, 1.0D / sum(x) AS it FROM parts",
    ],
)
def test_a_sum_whose_size_is_not_known_is_not_said_to_differ(tmp_path: Path, sql: str) -> None:
    values: Any = (1.0, 3.0)

    assert of_derived(tmp_path, sql, 0.25 if "1.0D" in sql else 4.0, values) == EQUAL
    assert of_derived(tmp_path, sql, 5.0, values) == NOT_WITNESSED
