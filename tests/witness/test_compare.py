"""How the witness compares: by key, then by exact columns and doubles in order; each column by its rule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from twinlake.witness.answer import DIFFERS, EQUAL, NOT_WITNESSED, Compared, Verdict
from twinlake.witness.compare import compare
from twinlake.witness.database import Database, connect
from twinlake.witness.measured import Spec
from twinlake.witness.measures import measured
from twinlake.witness.result import BY_ITS_SIZE, EXACTLY, Result, Rule, Shown
from twinlake.witness.types import BIGINT, DOUBLE, Type

NAN, INF = "'nan'::DOUBLE", "'inf'::DOUBLE"


@pytest.fixture
def database() -> Iterator[Database]:
    with connect() as connection:
        yield Database(connection)


def found(database: Database, witness: str, shown: str, **columns: Shown) -> Compared:
    """Of rows (VALUES) that have the column `k` as their key, and these."""
    names = ", ".join(("k", *columns))
    types = {"k": BIGINT, **{name: one.type for name, one in columns.items()}}
    result = Result(
        f"SELECT * FROM (VALUES {witness}) AS _({names})", ("k",), {"k": Shown(BIGINT), **columns}
    )
    database.view("them", f"SELECT * FROM (VALUES {shown}) AS _({names})")
    return compare(database, result, "them", types).rows


@pytest.mark.parametrize(
    ("rule", "witness", "shown", "expected"),
    [
        (EXACTLY, "1.0", "1.0000000000000002", DIFFERS), (EXACTLY, NAN, NAN, EQUAL),
        (EXACTLY, "0.0", "-0.0", EQUAL),
        (EXACTLY, "NULL", "NULL", EQUAL), (EXACTLY, "NULL", "0.0", DIFFERS), (EXACTLY, NAN, INF, DIFFERS),
        (BY_ITS_SIZE, "1e10", "10000000001.0", EQUAL), (BY_ITS_SIZE, "1e10", "10000000100.0", DIFFERS),
        (BY_ITS_SIZE, "0.0", "1e-300", DIFFERS), (BY_ITS_SIZE, INF, "1.0", DIFFERS),
        (BY_ITS_SIZE, NAN, "1.0", DIFFERS),
        (BY_ITS_SIZE, "NULL", "1.0", DIFFERS), (BY_ITS_SIZE.unsure, "0.0", "1e-17", NOT_WITNESSED),
        (BY_ITS_SIZE.unsure, "2.0", "2.0", EQUAL),
    ],
)  # fmt: skip
def test_doubles_are_compared_by_their_rule(
    database: Database, rule: Rule, witness: str, shown: str, expected: Verdict
) -> None:
    rows = (f"(1::BIGINT, {value}::DOUBLE)" for value in (witness, shown))

    assert found(database, *rows, v=Shown(DOUBLE, rule)).verdict == expected


def test_a_column_that_the_witness_does_not_make_is_none_that_it_calls_equal(database: Database) -> None:
    result = Result("SELECT 1::BIGINT AS k", ("k",), {"k": Shown(BIGINT)})
    database.view("them", "SELECT 1::BIGINT AS k, 7::BIGINT AS more")

    compared = compare(database, result, "them", {"k": BIGINT, "more": BIGINT}).rows

    assert (compared.verdict, compared.why) == (NOT_WITNESSED, "column more is not known to the witness")


def test_what_is_sure_decides_beside_what_is_not(database: Database) -> None:
    columns = {"v": Shown(DOUBLE, BY_ITS_SIZE.unsure), "n": Shown(BIGINT)}

    answer = found(
        database, "(1::BIGINT, 0.0::DOUBLE, 1::BIGINT)", "(1::BIGINT, 1e-17::DOUBLE, 2::BIGINT)", **columns
    )

    assert answer.verdict == DIFFERS and answer.differences[0].columns == ("v", "n")


@pytest.mark.parametrize(
    ("witness", "shown", "expected"),
    [
        ("(1, 1, 0.1), (1, 1, 0.3), (1, 2, 0.2)", "(1, 2, 0.2), (1, 1, 0.3), (1, 1, 0.1)", EQUAL),
        ("(1, 1, 0.1), (1, 1, 0.3)", "(1, 1, 0.1), (1, 1, 0.2)", DIFFERS),
        ("(1, 1, 0.1), (1, 1, 0.1)", "(1, 1, 0.1)", DIFFERS),
        ("(1, 1, 0.1)", "(1, 1, 0.1), (1, 1, 0.1)", DIFFERS),
        ("(1, 1, 0.1), (2, 1, 0.1)", "(1, 1, 0.1), (1, 1, 0.1)", DIFFERS),
    ],
)
def test_rows_of_one_key_meet_by_exact_columns_then_by_doubles(
    database: Database, witness: str, shown: str, expected: Verdict
) -> None:
    columns = {"n": Shown(BIGINT), "v": Shown(DOUBLE, BY_ITS_SIZE)}
    typed = "SELECT k::BIGINT AS k, n::BIGINT AS n, v::DOUBLE AS v FROM (VALUES {}) AS _(k, n, v)"
    result = Result(typed.format(witness), ("k",), {"k": Shown(BIGINT), **columns})
    database.view("them", typed.format(shown))

    rows = compare(database, result, "them", {"k": BIGINT, "n": BIGINT, "v": DOUBLE}).rows

    assert rows.verdict == expected


def test_which_of_two_doubles_belong_together_is_not_known_of_one_key(database: Database) -> None:
    columns = {"v": Shown(DOUBLE, BY_ITS_SIZE), "w": Shown(DOUBLE, BY_ITS_SIZE)}
    rows = [
        "(1::BIGINT, 1.0::DOUBLE, 5.0::DOUBLE), (1, 1.0000000000000002, 6.0)",
        "(1::BIGINT, 1.0000000000000002::DOUBLE, 5.0::DOUBLE), (1, 1.0, 6.0)",
    ]

    assert found(database, *rows, **columns).verdict == NOT_WITNESSED


@pytest.mark.parametrize(
    "type_", ["double", "struct<a:int,b:string>", "array<int>", "binary", "timestamp", "boolean"]
)
def test_keys_of_every_type_meet(database: Database, type_: str) -> None:
    values = {
        "double": (NAN, INF, "0.0", "NULL"),
        "struct<a:int,b:string>": ("{'a': 1, 'b': NULL}", "{'a': NULL, 'b': ''}", "NULL"),
        "array<int>": ("[]", "[NULL]", "[1, 2]", "NULL"),
        "binary": (r"'\x00'::BLOB", r"''::BLOB", "NULL"),
        "timestamp": ("'0001-01-01'", "'9999-12-31 23:59:59.999999'", "NULL"),
        "boolean": ("true", "false", "NULL"),
    }[type_]
    other = ["-0.0" if value == "0.0" else value for value in reversed(values)]
    of = Type.parse(type_)
    sides = [
        " UNION ALL ".join(f"SELECT CAST({value} AS {of.duckdb}) AS k" for value in side)
        for side in (values, other)
    ]
    database.view("them", sides[1])

    rows = compare(database, Result(sides[0], ("k",), {"k": Shown(of)}), "them", {"k": of}).rows

    assert (rows.verdict, rows.rows) == (EQUAL, len(values))


def bounded(kind: str, **more: object) -> Rule:
    return measured(Spec("v", {"kind": kind, "of": "x", **more}, {"x": DOUBLE}, False)).rule


@pytest.mark.parametrize(
    ("exact", "shown", "expected"),
    [
        (4095, 4095, EQUAL), (4095, 4096, DIFFERS), (4096, 4480, EQUAL), (4096, 4482, DIFFERS),
        (100_000, 90_601, EQUAL), (100_000, 90_599, DIFFERS), (0, 0, EQUAL), (0, 1, DIFFERS),
    ],
)  # fmt: skip
def test_distinct_values_are_counted_exactly_below_the_size_of_a_sketch(
    database: Database, exact: int, shown: int, expected: Verdict
) -> None:
    rows = (f"(1::BIGINT, {value}::BIGINT)" for value in (exact, shown))

    assert found(database, *rows, v=Shown(BIGINT, bounded("count_distinct", exact=False))).verdict == expected


@pytest.mark.parametrize(
    ("held", "q", "shown", "expected"),
    [
        ("(1.0), (3.0)", 0.5, "2.019", EQUAL), ("(1.0), (3.0)", 0.5, "2.021", DIFFERS),
        ("(-100.0), (100.0)", 0.5, "0.99", EQUAL), ("(-100.0), (100.0)", 0.5, "1.01", DIFFERS),
        ("(0.0), (0.0)", 0.5, "0.0", EQUAL), ("(0.0), (0.0)", 0.5, "1e-9", DIFFERS),
        (f"(1.0), ({INF})", 0.5, INF, EQUAL), (f"(1.0), ({INF})", 0.5, "1.0", DIFFERS),
        (f"(1.0), ({NAN})", 1.0, NAN, EQUAL), (f"(1.0), ({NAN})", 0.0, "1.0", EQUAL),
        ("(NULL)", 0.5, "NULL", EQUAL),
    ],
)  # fmt: skip
def test_quantiles_are_as_near_as_their_buckets(
    database: Database, held: str, q: float, shown: str, expected: Verdict
) -> None:
    made = measured(Spec("v", {"kind": "quantile", "of": "x", "q": q}, {"x": DOUBLE}, False))
    parts = ", ".join(f"{sql} AS {name}" for name, sql in made.parts.items())
    beside = ", ".join(f"{sql} AS {name}" for name, sql in made.beside.items())
    rows = f"SELECT {parts} FROM (SELECT x::DOUBLE AS x FROM (VALUES {held}) AS _(x))"
    result = Result(
        f"SELECT 1::BIGINT AS k, {made.value} AS v, {beside} FROM ({rows})", ("k",),
        {"k": Shown(BIGINT), "v": Shown(made.type, made.rule)},
    )  # fmt: skip
    database.view("them", f"SELECT 1::BIGINT AS k, {shown}::DOUBLE AS v")

    assert compare(database, result, "them", {"k": BIGINT, "v": DOUBLE}).rows.verdict == expected
