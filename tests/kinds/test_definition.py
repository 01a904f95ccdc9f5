"""Definitions are data: they come back from JSON, and bad ones are refused where they are written."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import DefinitionError, UsageError
from jobs.kinds.measure import MEASURES, Count, Measure, Sum, measure_from_json
from jobs.kinds.table import Aggregate, Events, Explode, Latest, Table, Tumbling
from jobs.tables import TABLES

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(
    lambda n: not n.startswith(("window", "final"))
)
TEXTS = st.text(min_size=1, max_size=30)
GOOD: dict[str, Any] = {
    "name": "t",
    "source": "orders",
    "columns": {"k": "region", "x": "amount", "at": "ordered_at"},
}


@st.composite
def tables(draw: st.DrawFn) -> Table:
    columns = draw(st.dictionaries(NAMES, TEXTS, min_size=2, max_size=6))
    names = list(columns)
    common = {
        "name": draw(NAMES),
        "source": draw(NAMES),
        "columns": columns,
        "where": draw(st.none() | TEXTS),
    }
    kind = draw(st.sampled_from(["events", "aggregate", "latest"]))
    if kind == "events":
        return Events(**common)
    if kind == "latest":
        return Latest(**common, keys=(names[0],), order=tuple(names[:2]), values=tuple(names[1:]),
                      delete_when=draw(st.none() | TEXTS))  # fmt: skip
    measures: dict[str, Measure] = {
        f"m{i}": draw(st.sampled_from(list(MEASURES.values())))(names[0]) for i in range(3)
    }
    size = draw(st.sampled_from(["1 minute", "PT1H", "90 seconds"]))
    window = draw(st.none() | st.just(Tumbling(on=names[-1], size=size)))
    explode = draw(st.none() | st.just(Explode(name="part", array="split(a, ' ')")))
    keys = () if window else (names[0],)
    return Aggregate(**common, keys=keys, window=window, measures=measures, explode=explode)


@given(tables())
def test_a_definition_comes_back_from_json_exactly(table: Table) -> None:
    # sorted keys: whoever stores it may reorder objects, and order is meaning
    stored = json.loads(json.dumps(table.to_json(), sort_keys=True))

    found = Table.from_json(stored)

    assert found == table and type(found) is type(table)
    assert list(found.columns) == list(table.columns) and found.to_json() == table.to_json()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_place_is_no_part_of_a_definition(table: Table) -> None:
    found = Table.from_json(table.to_json())

    assert found.place is None and found == table and "place" not in table.to_json()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "sessions"}, "unknown table kind 'sessions'"),
        ({"surprise": 1}, "unknown key 'surprise'"),
        ({"place": None}, "unknown key 'place'"),
        ({"window": {"kind": "tumbling", "on": "at", "size": "1 minute", "slide": 1}}, "unknown key 'slide'"),
        ({"measures": [["n", {"kind": "median", "of": "x"}]]}, "unknown measure kind 'median'"),
        ({"measures": [["n", {"kind": "sum", "of": "x", "exact": True}]]}, "unknown key 'exact'"),
        ({"columns": {"k": "region"}}, "no table of kind"),
        ({"columns": None}, "no table of kind"),
    ],
)
def test_unknown_parts_of_stored_definitions_are_refused_by_name(change: dict[str, Any], words: str) -> None:
    good = Aggregate(**GOOD, keys=("k",), measures={"n": Sum("x")}).to_json()

    with pytest.raises(UsageError, match=words):
        Table.from_json({**good, **change})


@pytest.mark.parametrize("kind", MEASURES.values(), ids=lambda kind: kind.kind)
def test_a_measure_comes_back_from_json(kind: type[Measure]) -> None:
    assert measure_from_json(kind("x").to_json()) == kind("x")


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (Events, {"columns": {}}, "no columns"),
        (Events, {"name": "a b"}, "name 'a b'"),
        (Events, {"name": "../x"}, "name '../x'"),
        (Events, {"columns": {"a": "1", "A": "2"}}, "'A' is given twice"),
        (Events, {"columns": {"_offset": "1"}}, "column '_offset'"),
        (Aggregate, {"keys": ("nothing",), "measures": {"n": Count()}}, "key 'nothing' is not one of"),
        (Aggregate, {"keys": ("k",), "measures": {"n": Sum("nothing")}}, "measured column 'nothing'"),
        (Aggregate, {"keys": ("k",), "measures": {}}, "no measures"),
        (Aggregate, {"keys": (), "measures": {"n": Count()}}, "neither keys nor a window"),
        (Aggregate, {"keys": ("k",), "measures": {"k": Count()}}, "'k' is given twice"),
        (Aggregate, {"keys": ("k",), "measures": {"a__b": Count()}}, "'a__b'"),
        (
            Aggregate,
            {"keys": ("k",), "measures": {"final": Count()}, "window": Tumbling(on="at", size="1 minute")},
            "'final' is given twice",
        ),
        (
            Aggregate,
            {"keys": ("k",), "measures": {"n": Count()}, "window": Tumbling(on="at", size="soon")},
            "soon",
        ),
        (
            Aggregate,
            {"keys": ("k",), "measures": {"n": Count()}, "window": Tumbling(on="z", size="1 day")},
            "'z'",
        ),
        (Latest, {"keys": ("k",), "order": (), "values": ("x",)}, "no order columns"),
        (Latest, {"keys": ("k",), "order": ("at",), "values": ("k",)}, "'k' is given twice"),
    ],
)
def test_what_cannot_be_a_table_is_refused(kind: type[Table], changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        kind(**{**GOOD, **changes})


def test_a_refusal_names_the_place_where_the_definition_is_written() -> None:
    line = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    with pytest.raises(DefinitionError) as caught:
        Latest(**GOOD, keys=("k",), order=("nothing",), values=("x",))

    assert (Path(caught.value.file).name, caught.value.line) == (Path(__file__).name, line + 2)
    assert str(caught.value).startswith(f"tests/kinds/test_definition.py:{line + 2}: table t: ")
