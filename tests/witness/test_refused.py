"""What is not listed is refused by name; a guard's words are read from what DuckDB says."""

from __future__ import annotations

import duckdb
import pytest

from twinlake.witness.database import connect
from twinlake.witness.expressions import translate
from twinlake.witness.refused import Refused, guarded, raised
from twinlake.witness.types import DOUBLE, INT, STRING

COLUMNS = {"a": INT, "Text": STRING, "x": DOUBLE}


@pytest.mark.parametrize(
    ("text", "named", "why"),
    [
        ("rand() + a", "rand()", "the function rand is not listed"),
        ("nothing + 1", "nothing", "there is no column nothing"),
        ("a +", "a +", "it is not understood"),
        ("a; a", "a; a", "stands in no other"),
        ("a + 1 AS b", "a + 1 AS b", "Alias is not listed"),
        (r"text = 'a\u0041'", r"'a\u0041'", "this escape in a text is not listed"),
        ("text + 1", "text + 1", "string + int is not listed"),
        ("(SELECT 1)", "(SELECT 1)", "Subquery is not listed"),
        ("a IN (SELECT 1)", "a IN (SELECT 1)", "IN with anything but"),
        ("a < 1 = true", "a < 1 = TRUE", "conditions in a comparison need parentheses"),
        ("CASE WHEN a THEN 1 END", "a", "a condition is boolean"),
        ("coalesce(a, text)", "coalesce(a, text)", "no common type"),
        ("text LIKE text", "text LIKE text", "a pattern that is written out"),
        ("1e400BD", "401", "not listed"),
        ("5::bigint", "5::bigint", "a number that is cast by ::"),
        ("123456789012345678901234567890123456789", "", "more than 38 digits"),
        ("DATE '2026-02-30'", "2026-02-30", "this form of a date is not listed"),
        ("a.b", "a.b", "int has no one field b"),
        ("array_contains(array(a), NULL)", "array_contains", "no NULL that is written out"),
        ("+".join(["a"] * 300), "a+a", "nested too deeply"),
    ],
)
def test_what_is_not_listed_is_refused_by_name(text: str, named: str, why: str) -> None:
    with pytest.raises(Refused) as found:
        translate(text, COLUMNS)

    assert named in found.value.expression and why in found.value.why_text


def test_columns_are_found_in_any_case_and_named_as_they_are() -> None:
    assert translate("TEXT", COLUMNS).sql == '"Text"'


def test_columns_that_differ_by_case_alone_are_refused() -> None:
    with pytest.raises(Refused, match="case alone"):
        translate("a", {"a": INT, "A": INT})


def test_a_guard_raises_for_the_rows_that_meet_it_and_its_words_are_read() -> None:
    sql = guarded("a > 1", "a", "f('x (y)', (because z))", "it's (so) said")
    rows = "SELECT {} FROM (VALUES ({})) t(a)"

    assert connect().sql(rows.format(sql, 1)).fetchall() == [(1,)]
    with pytest.raises(duckdb.Error) as found:
        connect().sql(rows.format(sql, 2)).fetchall()
    assert raised(str(found.value)) == ("f('x (y)', (because z))", "it's (so) said")


def test_an_error_that_no_guard_raised_is_none() -> None:
    assert raised("Out of Range Error: Overflow") is None
