"""A definition that is written as SQL is read back as the same one; what SQL cannot say of it is refused."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kinds.test_definition import TEXTS, tables
from tests.project import EXAMPLES, TABLES
from twinlake.base.errors import UsageError
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.all import KINDS
from twinlake.kinds.barriers import Snapshot, SourcePlace
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.all import MEASURES
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.histogram import Histogram
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.picks import ArgMax, ArgMin, First, Last
from twinlake.kinds.measures.sets import CollectSet
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.sql_form import functions, writing
from twinlake.kinds.sql_form.reading import SAID_BY_SQL, definition
from twinlake.kinds.steps import Explode
from twinlake.kinds.store import Store
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.windows import Hopping, Tumbling

GALLERY: tuple[Kind, ...] = (*TABLES, *(one for found in EXAMPLES.values() for one in found))
EXPRESSIONS = (
    "a", "`a`", "`a b`", "`a``b`", "a.b[0].`c`", "_key", "5L", "1.5BD", "- 1", "x'3D'", "NULL", "end",
    "order", "limit",
    "qualify + 1", "a > limit AND limit > group", "a IS DISTINCT FROM b", "a IS NOT DISTINCT FROM b",
    "extract(YEAR FROM at)", "trim(BOTH 'x' FROM a)", "CAST(a AS INT)", "if(a, 'FROM t', 'GROUP BY x')",
    "'it''s'", r"'it\'s'", "'-- no comment'", "'/* neither */'", '"in \'double\' quotes -- "', r"r'\p{L}+'",
    "'two\nlines'", "'two\r\n  lines'", "'ü \u2028 \U0001f600'",
    "CASE WHEN a THEN 1 -- why, (not) 'that\n  ELSE 2 END",
    "1 /* ) , */ + 2", "transform(xs, x -> x + 1)", "named_struct('a', 1).a", "date '2020-01-01'",
    "at + interval 1 day", "a BETWEEN 1 AND 2", "a IN (1, 2)", "a['k,']", "a ? b", "${x}", "a:b", "'${x}'",
)  # fmt: skip
"""Spark SQL, and a little that is none: what looks like the end of an expression in it is not."""
WORDS = ("order", "from", "end", "group", "select", "limit", "last", "first", "by", "partition", "x", "n1")
NAMES = st.sampled_from(WORDS) | st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(
    lambda name: not name.startswith(("window", "final", "session", "place"))
)
NUMBERS = st.integers(-1000, 1000) | st.floats(-1e9, 1e9)
ABOUT = "note: what it is.\nreads: nothing\n  Keys : none"
DURATIONS = st.sampled_from(["1 minute", "PT5M", " 90  seconds", "1 day"])


def measures(columns: list[str]) -> st.SearchStrategy[Measure]:
    column = st.sampled_from(columns)
    special = (
        st.builds(Count, st.none() | column),
        st.builds(CountDistinct, column, exact=st.booleans()),
        st.builds(Quantile, column, st.floats(0, 1) | st.lists(st.floats(0, 1), max_size=3).map(tuple)),
        st.builds(Histogram, column, edges=st.lists(NUMBERS, max_size=3).map(tuple)),
        st.builds(Histogram, column, low=NUMBERS, high=NUMBERS, buckets=st.integers(1, 9)),
        st.builds(TopK, column, most=st.integers(1, 9), by=st.none() | column),
        st.builds(CollectSet, column, most=st.sampled_from([1, 100, 500])),
        *(st.builds(one, column, by=st.none() | column) for one in (First, Last)),
        *(st.builds(one, column, by=column) for one in (ArgMin, ArgMax)),
    )
    made = {Count, CountDistinct, Quantile, Histogram, TopK, CollectSet, First, Last, ArgMin, ArgMax}
    return st.one_of(*special, *(st.builds(one, column) for one in MEASURES.values() if one not in made))


@st.composite
def of_sql(draw: st.DrawFn) -> Any:
    """One that SQL can say."""
    expressions = st.sampled_from(EXPRESSIONS)
    names = draw(st.lists(NAMES, min_size=3, max_size=6, unique=True))
    columns = {name: name if draw(st.booleans()) else draw(expressions) for name in names}
    common: dict[str, Any] = {"name": draw(NAMES), "inputs": (draw(NAMES),), "columns": columns,
                              "where": draw(st.none() | expressions)}  # fmt: skip
    kind = draw(st.sampled_from([one for one in SAID_BY_SQL if one is not Derived]))
    if kind is Events:
        keys = tuple(names[: draw(st.integers(1, 2))])
        ahead = draw(st.sampled_from(["0 seconds", "1 minute"]))
        store = Store(keys=keys, on=names[2], cell="1 hour", ahead=ahead)
        return Events(**common, store=draw(st.none() | st.just(store)))
    if kind is TopRows:
        return TopRows(**common, keys=(names[1],), order=tuple(names[:2]), rows=draw(st.integers(1, 9)),
                       values=(names[2], names[0]))  # fmt: skip
    if kind is Latest:
        barriers: dict[str, Any] = {
            "snapshot": Snapshot(of=draw(expressions), last="b"),
            "truncate_when": draw(st.none() | expressions),
            "source_place": SourcePlace(of="'lsn'", at="a"),
        }
        more = draw(st.sampled_from([barriers, {"order": tuple(names[: draw(st.integers(0, 2))])}]))
        common["delete_when"] = draw(st.none() | expressions)
        return Latest(**common, keys=(names[1],), values=(names[2],), **more)
    keys = (names[0],)
    called = st.sampled_from([*names[1:], "m1", "m2"])
    found = draw(st.dictionaries(called, measures(names), min_size=1, max_size=4))
    if kind is Sessions:
        plain = {name: one for name, one in found.items() if one.item is None} or {"m1": Count()}
        return Sessions(**common, keys=keys, on=names[1], gap=draw(DURATIONS), grid="7 days", measures=plain)
    on = draw(st.sampled_from(names))
    hopping = Hopping(on=on, size="10 minutes", every=draw(st.sampled_from(["1 minute", "PT5M"])))
    daily = Tumbling(on=on, size="1 day", time_zone=draw(st.sampled_from(["Asia/Tokyo", "UTC"])))
    window = draw(st.sampled_from([None, Tumbling(on=on, size=draw(DURATIONS)), hopping, daily]))
    explode = draw(st.none() | st.builds(Explode, name=NAMES, array=expressions))
    retention = draw(st.sampled_from([None, "400 days"])) if window else None
    return Aggregate(
        **common, keys=keys, window=window, measures=found, explode=explode, retention=retention
    )


def read_back(table: Kind) -> Kind:
    return definition(writing.statement(table, ABOUT), table.name)


@given(of_sql())
def test_a_definition_comes_back_from_sql_exactly(table: Kind) -> None:
    found = read_back(table)

    assert writing.as_json(found) == writing.as_json(writing.plain(table)) and type(found) is type(table)


@given(tables() | of_sql(), TEXTS, st.sampled_from(["where", "delete_when", "gap", "retention"]))
def test_what_is_not_refused_comes_back_whatever_stands_in_it(table: Any, text: str, at: str) -> None:
    data = table.to_json()
    if data.get(at) is not None:
        data[at] = text
    try:
        table = type(table).from_json(data)
        found = read_back(table)
    except UsageError:
        return

    assert writing.as_json(found) == writing.as_json(writing.plain(table))


@pytest.mark.parametrize("table", GALLERY, ids=lambda table: table.name)
def test_every_definition_of_the_gallery_comes_back_or_its_kind_is_refused_by_name(table: Kind) -> None:
    if type(table) in SAID_BY_SQL:
        assert writing.as_json(read_back(table)) == writing.as_json(writing.plain(table))
        return

    with pytest.raises(UsageError, match="has no form in SQL") as refused:
        writing.statement(table)
    assert table.kind in refused.value.why and ", ".join(writing.KINDS) in refused.value.remedy


def test_every_kind_with_a_form_stands_in_the_gallery() -> None:
    assert {table.kind for table in GALLERY} >= set(writing.KINDS) and set(writing.KINDS) <= set(KINDS)


def test_every_measure_is_a_function_and_no_two_functions_are_one_measure() -> None:
    own = {kind for kind in MEASURES.values() if kind.__module__.startswith("twinlake.")}
    said = [(one.name, one.distinct, len(one.takes)) for one in functions.FUNCTIONS]

    assert {one.measure for one in functions.FUNCTIONS} == own and len(set(said)) == len(said)
    for one in functions.FUNCTIONS:
        needed = {each.name for each in fields(one.measure) if each.default is MISSING}
        assert needed <= {*one.takes, *one.fixed}, one.form


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, b FROM t",
        "\n        SELECT a,\n          b -- c\n        FROM t\n    ",
        "SELECT x.a, max(b) AS b FROM t AS x GROUP BY x.a",
        "WITH c AS (SELECT z FROM t) SELECT a, b FROM c",
        "SELECT a, b FROM t UNION ALL SELECT b, a FROM t",
        "(SELECT a, b FROM t)",
        "SELECT * FROM t",
        "FROM t SELECT a, b",
        "SELECT a, 'two\n      lines' AS b FROM t\n      WHERE a > 1",
        "SELECT a, b FROM t -- reads: nothing",
    ],
)
@pytest.mark.parametrize("by", [(), ("a",)])
def test_a_whole_query_comes_back_with_its_columns(sql: str, by: tuple[str, ...]) -> None:
    table = Derived(name="d", reads=("t",), columns=("a", "b"), keys=("a",), by=by, sql=sql)

    found = read_back(table)

    assert writing.as_json(found) == writing.as_json(writing.plain(table))
    assert found.query is not None and found.query.split() == writing.plain(table).query.split()  # type: ignore[union-attr]
