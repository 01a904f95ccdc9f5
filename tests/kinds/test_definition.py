"""Definitions are data: they come back from JSON, and bad ones are refused where they are written."""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.project import TABLES
from twinlake.base.errors import DefinitionError, UsageError
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.all import KINDS, from_json
from twinlake.kinds.as_of_join import AsOfJoin
from twinlake.kinds.definition import Definition
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.grid import Grid
from twinlake.kinds.history import History
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.kind import Kind, grid_of, is_stored
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.all import MEASURES
from twinlake.kinds.measures.all import from_json as measure_from_json
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.histogram import Histogram
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.measures.multisets import TopK
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.steps import Explode
from twinlake.kinds.store import Store
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.trailing import Trailing
from twinlake.kinds.union import Union
from twinlake.kinds.windows import Hopping, Tumbling, window_from_json

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(
    lambda n: not n.startswith(("window", "final", "m0", "m1", "m2"))
)
TEXTS = st.text(min_size=1, max_size=30)
GOOD: dict[str, Any] = {
    "name": "t",
    "inputs": ("orders",),
    "columns": {"k": "region", "x": "amount", "at": "ordered_at"},
}
VISITS = {"keys": ("k",), "on": "at", "gap": "30 minutes", "measures": {"n": Count()}}
TRAILED: dict[str, Any] = {
    "keys": ("k",), "on": "at",
    "last": {"5 minutes": {"n": Count(), "sum": Sum("x")}, "1 hour": {"later": Count()}},
}  # fmt: skip


def measure_of(kind: type[Measure], column: str = "x") -> Measure:
    """One with that column wherever it needs one, and 3 for a number."""
    needed = (one for one in fields(kind) if one.name == "of" or one.default is MISSING)
    return kind(**{one.name: 3 if one.type == "int" else column for one in needed})


@st.composite
def tables(draw: st.DrawFn) -> Any:
    columns = draw(st.dictionaries(NAMES, TEXTS, min_size=2, max_size=6))
    names = list(columns)
    common = {
        "name": draw(NAMES),
        "inputs": (draw(NAMES),),
        "columns": columns,
        "where": draw(st.none() | TEXTS),
    }
    kind = draw(st.sampled_from(["events", "aggregate", "latest", "history", "sessions"]))
    if kind == "events":
        return Events(**common)
    if kind in ("latest", "history"):
        order = tuple(names[: draw(st.integers(0, 2))])
        made: type[Any] = Latest if kind == "latest" else History
        return made(**common, keys=(names[0],), order=order, values=tuple(names[1:]),
                    delete_when=draw(st.none() | TEXTS))  # fmt: skip
    known = [one for one in MEASURES.values() if kind == "aggregate" or measure_of(one).item is None]
    measures: dict[str, Measure] = {
        f"m{i}": measure_of(draw(st.sampled_from(known)), names[0]) for i in range(3)
    }
    size = draw(st.sampled_from(["1 minute", "PT5M", "90 seconds"]))
    if kind == "sessions":
        return Sessions(**common, keys=(names[0],), on=names[1], gap=size, measures=measures,
                        grid=draw(st.sampled_from(["1 day", "2 hours"])))  # fmt: skip
    hopping = Hopping(on=names[-1], size=size, every=draw(st.sampled_from(["10 seconds", "PT30S"])))
    daily = Tumbling(on=names[-1], size="1 day", time_zone=draw(st.sampled_from(["Asia/Tokyo", "UTC"])))
    window = draw(st.sampled_from([None, Tumbling(on=names[-1], size=size), hopping, daily]))
    explode = draw(st.none() | st.just(Explode(name="part", array="split(a, ' ')")))
    keys = () if window else (names[0],)
    return Aggregate(**common, keys=keys, window=window, measures=measures, explode=explode)


@given(tables())
def test_a_definition_comes_back_from_json_exactly(table: Any) -> None:
    # sorted keys: whoever stores it may reorder objects, and order is meaning
    stored = json.loads(json.dumps(table.to_json(), sort_keys=True))

    found = from_json(stored)

    assert found == table and type(found) is type(table)
    assert list(found.columns) == list(table.columns) and found.to_json() == table.to_json()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_place_is_no_part_of_a_definition(table: Kind) -> None:
    found = from_json(table.to_json())

    assert found.place is None and found == table and "place" not in table.to_json()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "matches"}, "unknown table kind 'matches'"),
        ({"surprise": 1}, "unknown key 'surprise'"),
        ({"place": None}, "unknown key 'place'"),
        ({"window": {"kind": "tumbling", "on": "at", "size": "1 minute", "slide": 1}}, "unknown key 'slide'"),
        ({"measures": [["n", {"kind": "median", "of": "x"}]]}, "unknown measure kind 'median'"),
        ({"measures": [["n", {"kind": "sum", "of": "x", "exact": True}]]}, "unknown key 'exact'"),
        ({"columns": {"k": "region"}}, "is not a valid table of kind"),
        ({"columns": None}, "is not a valid table of kind"),
        ({"inputs": None}, "is not a valid table of kind"),
        ({"keys": None}, "is not a valid table of kind"),
        ({"measures": None}, "is not a valid table of kind"),
        ({"source": "orders"}, "unknown key 'source'"),
        ({"window": {"kind": "tumbling", "on": "at"}}, "is not a valid table of kind"),
        ({"window": {"kind": "hopping", "on": "at", "size": "1 minute"}}, "is not a valid table of kind"),
        ({"window": {"kind": "tumbling", "on": "at", "every": "1 minute"}}, "unknown key 'every'"),
        ({"window": {"on": "at", "size": "1 minute"}}, "unknown window kind None"),
        ({"window": {"kind": "sliding", "on": "at", "size": "1 minute"}}, "unknown window kind 'sliding'"),
        ({"explode": {"name": "part", "array": "a", "outer": True}}, "unknown key 'outer'"),
    ],
)
def test_unknown_parts_of_stored_definitions_are_refused_by_name(change: dict[str, Any], words: str) -> None:
    good = Aggregate(**GOOD, keys=("k",), measures={"n": Sum("x")}).to_json()

    with pytest.raises(UsageError, match=words):
        from_json({**good, **change})


@pytest.mark.parametrize("kind", MEASURES.values(), ids=lambda kind: kind.kind)
def test_a_measure_comes_back_from_json(kind: type[Measure]) -> None:
    assert measure_from_json(json.loads(json.dumps(measure_of(kind).to_json()))) == measure_of(kind)


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (Events, {"columns": {}}, "no columns"),
        (Events, {"name": "a b"}, "name 'a b'"),
        (Events, {"name": "../x"}, "name '../x'"),
        (Events, {"columns": {"a": "1", "A": "2"}}, "'A' is given twice"),
        (Events, {"columns": {"_offset": "1"}}, "column '_offset'"),
        (Events, {"inputs": "orders"}, "inputs is 'orders', not a tuple of texts"),
        (Events, {"inputs": ()}, "no inputs"),
        (Events, {"inputs": ("../x",)}, "input '../x'"),
        (Events, {"inputs": ("orders", "Orders")}, "input 'Orders' is given twice"),
        (Events, {"inputs": ("orders", "refunds")}, "events are of one topic, not 2"),
        (
            Aggregate,
            {"inputs": ("orders", "refunds"), "keys": ("k",), "measures": {"n": Count()}},
            "kind aggregate reads one topic, not 2",
        ),
        (
            Latest,
            {"inputs": ("orders", "refunds"), "keys": ("k",), "order": ("at",), "values": ("x",)},
            "kind latest reads one topic, not 2",
        ),
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
        (
            Aggregate,
            {"keys": ("k",), "measures": {"n": Count()}, "explode": Explode(name="_x", array="split(k, '')")},
            "explode name '_x'",
        ),
        (Aggregate, {"keys": ("k",), "measures": {"a b": Count()}}, "'a b'"),
        *(
            (Aggregate, {"keys": ("k",), "measures": {"n": Count()}, "window": window}, words)
            for window, words in (
                (Hopping(on="at", size="soon", every="1 day"), "window size: 'soon' is not a duration"),
                (Hopping(on="at", size="1 day", every="PT0.5S"), "every 'PT0.5S' is not made of whole"),
                (Hopping(on="at", size="1 minute", every="2 minutes"), "some records are in no window"),
                (Hopping(on="at", size="65 minutes", every="1 minute"), "in 65 windows, and at most 64"),
                (Hopping(on="z", size="2 days", every="1 day"), "window column 'z'"),
            )
        ),
        *(
            (Sessions, {**VISITS, **changes}, words)
            for changes, words in (
                ({"keys": ()}, "no keys"),
                ({"keys": ("z",)}, "key 'z' is not one of"),
                ({"on": "z"}, "time column 'z' is not one of"),
                ({"gap": "soon"}, "gap: 'soon' is not a duration"),
                ({"gap": "PT0.5S"}, "gap 'PT0.5S' is not made of whole seconds"),
                ({"grid": "PT86400.5S"}, "grid 'PT86400.5S' is not made of whole seconds"),
                ({"gap": "1 day"}, "the gap '1 day' is not shorter than the grid '1 day'"),
                ({"measures": {}}, "no measures"),
                ({"measures": {"n": Sum("z")}}, "measured column 'z'"),
                ({"measures": {"session_end": Count()}}, "'session_end' is given twice"),
                ({"inputs": ("orders", "refunds")}, "kind sessions reads one topic, not 2"),
            )
        ),
        *(
            (History, {"keys": ("k",), "order": ("at",), "values": ("x",), **changes}, words)
            for changes, words in (
                ({"keys": ()}, "no keys"),
                ({"values": ()}, "no values"),
                ({"keys": ("z",)}, "key 'z' is not one of"),
                ({"values": ("z",)}, "value 'z' is not one of"),
                ({"order": ("at", "z")}, "order column 'z' is not one of"),
                ({"values": ("x", "k")}, "'k' is given twice"),
                ({"columns": {**GOOD["columns"], "Valid_To": "at"}, "values": ("Valid_To",)}, "'Valid_To'"),
                (
                    {"columns": {**GOOD["columns"], "is_current": "1"}, "keys": ("is_current",)},
                    "'is_current'",
                ),
                ({"columns": {}}, "no columns"),
                ({"order": "at"}, "order is 'at', not a tuple of texts"),
                ({"delete_when": True}, "delete_when is True, not text or None"),
                ({"inputs": ("orders", "refunds")}, "kind history reads one topic, not 2"),
            )
        ),
        *(
            (Trailing, {**TRAILED, **changes}, words)
            for changes, words in (
                ({"keys": ()}, "no keys"),
                ({"keys": ("z",)}, "key 'z' is not one of"),
                ({"on": "z"}, "time column 'z' is not one of"),
                ({"last": {}}, "over no time"),
                ({"last": {"soon": {"n": Count()}}}, "last: 'soon' is not a duration"),
                ({"last": {"60 seconds": {"n": Count()}, "1 minute": {"m": Count()}}}, "is given twice"),
                ({"last": {"1 minute": {}}}, "no measures"),
                ({"last": {"1 minute": {"n": Count()}, "1 hour": {"n": Count()}}}, "'n' is given twice"),
                ({"last": {"1 minute": {"x": Count()}}}, "output column 'x' is given twice"),
                ({"last": {"1 minute": {"n": Sum("z")}}}, "measured column 'z'"),
                ({"last": {"1 minute": {"n": TopK("x", 3)}}}, r"n \(top_k\) would look at all rows"),
                ({"last": {"1 minute": {"n": CountDistinct("x", exact=True)}}}, "would look at all rows"),
                ({"last": {"3 days": {"n": Count()}}, "cell": "1 hour"}, "up to 73 cells of 1 hour"),
                ({"with_itself": "yes"}, "with_itself is 'yes', not True or False"),
                ({"inputs": ("orders", "refunds")}, "kind trailing reads one topic, not 2"),
            )
        ),
        (Latest, {"keys": (), "values": ("x",)}, "no keys"),
        (Latest, {"keys": ("k",), "values": ()}, "no values"),
        (Latest, {"keys": ("k",), "order": ("z",), "values": ("x",)}, "order column 'z' is not one of"),
        (Latest, {"keys": ("k",), "order": ("at",), "values": ("k",)}, "'k' is given twice"),
    ],
)
def test_what_cannot_be_a_table_is_refused(
    kind: type[Definition], changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(DefinitionError, match=words):
        kind(**{**GOOD, **changes})


def test_a_refusal_names_the_place_where_the_definition_is_written() -> None:
    line = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    with pytest.raises(DefinitionError) as caught:
        Latest(**GOOD, keys=("k",), order=("nothing",), values=("x",))

    assert (Path(caught.value.file).name, caught.value.line) == (Path(__file__).name, line + 2)
    assert str(caught.value).startswith(f"tests/kinds/test_definition.py:{line + 2}: table t: ")


def test_inputs_written_as_a_text_are_refused_with_what_to_write() -> None:
    with pytest.raises(DefinitionError) as caught:
        Events(**{**GOOD, "inputs": "orders"})

    assert caught.value.remedy == 'write inputs=("orders",), with the comma'


LATEST = {**GOOD, "keys": ("k",), "order": ("at",), "values": ("x",)}
COUNTED = {**GOOD, "keys": ("k",), "measures": {"n": Count()}}


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (Events, {"where": ("amount > 0",)}, "where is ('amount > 0',), not text or None"),
        (Events, {"columns": {"a": None}}, "columns['a'] is None, not text"),
        (Events, {"columns": {1: "a"}}, "a name in columns is 1, not text"),
        (Events, {"columns": [("a", "1")]}, "columns is [('a', '1')], not a map from text to text"),
        (Events, {"name": 7}, "name is 7, not text"),
        (Events, {"inputs": ("orders", 1)}, "inputs[1] is 1, not text"),
        (Latest, {"keys": "k"}, "keys is 'k', not a tuple of texts"),
        (Latest, {"keys": None}, "keys is None, not a tuple of texts"),
        (Latest, {"order": 7}, "order is 7, not a tuple of texts"),
        (Latest, {"delete_when": True}, "delete_when is True, not text or None"),
        (Aggregate, {"explode": "a"}, "explode is 'a', not Explode or None"),
        (Aggregate, {"window": "1 minute"}, "window is '1 minute', not Tumbling or Hopping or None"),
        (Aggregate, {"window": Tumbling(on="at", size=60)}, "window.size is 60, not text"),  # type: ignore[arg-type]
        (Aggregate, {"measures": {"n": "count"}}, "measures['n'] is 'count', not Measure"),
        (Aggregate, {"measures": {"n": Sum(7)}}, "measures['n'].of is 7, not text"),  # type: ignore[arg-type]
        (TopRows, {"rows": 3.0}, "rows is 3.0, not a whole number"),
        (Aggregate, {"measures": {"n": Histogram("x", edges=[0, 10])}},  # type: ignore[arg-type]
         "measures['n'].edges is [0, 10], not a tuple of numbers or None"),
        (Aggregate, {"measures": {"n": Histogram("x", edges=(0, "10"))}},  # type: ignore[arg-type]
         "measures['n'].edges[1] is '10', not a number"),
    ],
)
def test_a_value_of_another_type_than_its_field_s_is_refused_with_its_place(
    kind: type[Definition], changes: dict[str, Any], words: str
) -> None:
    good = {Events: GOOD, Latest: LATEST, TopRows: LATEST, Aggregate: COUNTED}[kind]  # type: ignore[index]

    with pytest.raises(DefinitionError) as caught:
        kind(**{**good, **changes})
    assert words in caught.value.why_text and caught.value.line > 0


@pytest.mark.parametrize(
    ("kind", "more", "named", "own"),
    [
        (History, {}, "valid_from", "valid_from, valid_to, is_current"),
        (History, {}, "Valid_To", "valid_from, valid_to, is_current"),
        (TopRows, {"rows": 3}, "Place", "place"),
    ],
)
@pytest.mark.parametrize("field", ["keys", "values"])
def test_a_column_like_one_of_the_kind_s_own_is_told_of_these(
    kind: type[Definition], more: dict[str, Any], named: str, own: str, field: str
) -> None:
    columns = {**GOOD["columns"], named: "x"}

    with pytest.raises(DefinitionError) as caught:
        kind(**{**LATEST, **more, "columns": columns, field: (named,)})

    assert f"output column {named!r} has the name of one that every table of kind" in caught.value.why_text
    assert caught.value.remedy == f"name it otherwise; it has {own} itself"


def test_a_definition_without_inputs_is_told_what_to_name() -> None:
    with pytest.raises(DefinitionError) as caught:
        Events(**{**GOOD, "inputs": ()})

    assert caught.value.remedy == 'name its topic, like inputs=("orders",)'


COORDINATE = ("_epoch", "_partition", "_offset")
SAMPLES: dict[str, Any] = {
    "derived": Derived(
        name="t", reads=("a", "b"), columns=("k", "n"), keys=("k",), by=("k",), broadcast=("b",),
        sql="SELECT k, n FROM a JOIN b USING (k)",
    ),
    "events": Events(**GOOD, where="amount > 0"),
    "events with a store": Events(
        **GOOD, store=Store(keys=("k",), on="at", cell="1 hour", back="10 minutes")
    ),
    "latest": Latest(**GOOD, keys=("k",), order=("at",), values=("x", "at"), delete_when="x = 0"),
    "latest by the log": Latest(**GOOD, keys=("k",), values=("x", "at")),
    "top rows": TopRows(**GOOD, keys=("k",), order=("at",), rows=3, values=("x",)),
    "history": History(**GOOD, keys=("k",), order=("at",), values=("x",), delete_when="x = 0"),
    "history by the log": History(**GOOD, keys=("at", "k"), values=("x",)),
    "trailing": Trailing(**GOOD, **TRAILED, with_itself=True, cell="1 hour"),
    "aggregate": Aggregate(
        **GOOD, keys=("k",), measures={"n": Count(), "sum": Sum("x")},
        explode=Explode(name="part", array="split(status, ' ')"),
    ),
    "aggregate in windows": Aggregate(
        **GOOD, keys=("k",), measures={"n": Count(), "mean": Avg("x")},
        window=Tumbling(on="at", size="PT1H"),
    ),
    "aggregate in hopping windows": Aggregate(
        **GOOD, keys=("k",), measures={"n": Count()},
        window=Hopping(on="at", size="PT1H", every="10 minutes"),
    ),
    "aggregate in hopping windows of before": Aggregate(
        **GOOD, keys=("k",), measures={"n": Count()},
        window=window_from_json({"kind": "hopping", "on": "at", "size": "PT1H", "every": "10 minutes"}),
    ),
    "sessions": Sessions(**GOOD, **VISITS),
    "aggregate in windows only": Aggregate(
        **GOOD, keys=(), measures={"n": Count("x")}, window=Tumbling(on="at", size="1 day"),
    ),
    "interval join": IntervalJoin(
        name="t", left="asks", right="hits", on=("k",), before="5 minutes", columns={"y": "right.x"},
    ),
    "as-of join": AsOfJoin(
        name="t", left="asks", right="hits", on=("k",), delete_when="x = 0", columns={"y": "right.x"},
    ),
    "rolling": Rolling(name="t", of="sums", last=("5 minutes", "1 day")),
    "union": Union(name="t", of=("sums", "others")),
}  # fmt: skip
SUMS = replace(SAMPLES["aggregate in windows"], name="sums")
for _what in ("rolling", "union"):
    SAMPLES[_what] = SAMPLES[_what].bound({"sums": SUMS, "others": replace(SUMS, inputs=("more",))})
VIEWS = ("derived", "events", "interval join", "as-of join", "rolling", "union")
LEFT, RIGHT = (tuple(f"_{side}{name}" for name in COORDINATE) for side in ("left", "right"))
EXPECTED: dict[str, dict[str, Any]] = {
    "derived": {
        "view_keys": ("k",),
        "by": ("k",),
        "output": ("k", "n"),
        "timeless": ("k", "n"),
        "implied": (),
        "state_keys": None,
        "grid": None,
    },
    "events": {
        "view_keys": COORDINATE,
        "by": COORDINATE,
        "output": ("k", "x", "at", *COORDINATE, "_timestamp"),
        "timeless": ("k", "x", "at", *COORDINATE, "_timestamp"),
        "implied": (*COORDINATE, "_timestamp"),
        "state_keys": None,
        "grid": None,
    },
    "events with a store": {
        "view_keys": COORDINATE,
        "by": COORDINATE,
        "output": ("k", "x", "at", *COORDINATE, "_timestamp"),
        "timeless": ("k", "x", "at", *COORDINATE, "_timestamp"),
        "implied": (*COORDINATE, "_timestamp"),
        "state_keys": (*COORDINATE, "at", "k", "_cell"),
        "grid": Grid(column="_cell", size=timedelta(hours=1)),
    },
    "latest": {
        "view_keys": ("k",),
        "by": ("k",),
        "output": ("k", "x", "at"),
        "timeless": ("k", "x", "at"),
        "implied": (),
        "state_keys": ("k",),
        "grid": None,
    },
    "latest by the log": {
        "view_keys": ("k",),
        "by": ("k",),
        "output": ("k", "x", "at"),
        "timeless": ("k", "x", "at"),
        "implied": (),
        "state_keys": ("k",),
        "grid": None,
    },
    "top rows": {
        "view_keys": ("k", "place"),
        "by": ("k",),
        "output": ("k", "place", "x"),
        "timeless": ("k", "place", "x"),
        "implied": (),
        "state_keys": ("k",),
        "grid": None,
    },
    "history": {
        "view_keys": ("k", "valid_from"),
        "by": ("k",),
        "output": ("k", "valid_from", "valid_to", "is_current", "x"),
        "timeless": ("k", "valid_from", "valid_to", "is_current", "x"),
        "implied": (),
        "state_keys": (*COORDINATE, "valid_from", "k"),
        "grid": None,
    },
    "history by the log": {
        "view_keys": ("at", "k", "valid_from"),
        "by": ("at", "k"),
        "output": ("at", "k", "valid_from", "valid_to", "is_current", "x"),
        "timeless": ("at", "k", "valid_from", "valid_to", "is_current", "x"),
        "implied": (),
        "state_keys": (*COORDINATE, "valid_from", "k", "at"),
        "grid": None,
    },
    "trailing": {
        "view_keys": COORDINATE,
        "by": ("k", "_cell"),
        "output": ("k", "x", "at", "n", "sum", "later", *COORDINATE, "_timestamp", "_cell", "final"),
        "timeless": ("k", "x", "at", "n", "sum", "later", *COORDINATE, "_timestamp", "_cell"),
        "implied": (*COORDINATE, "_timestamp", "_cell"),
        "state_keys": (*COORDINATE, "at", "k", "_cell"),
        "grid": Grid(column="_cell", size=timedelta(hours=1)),
    },
    "aggregate": {
        "view_keys": ("k",),
        "by": ("k",),
        "output": ("k", "n", "sum"),
        "timeless": ("k", "n", "sum"),
        "implied": (),
        "state_keys": ("k",),
        "grid": None,
    },
    "aggregate in windows": {
        "view_keys": ("k", "window_start"),
        "by": ("k", "window_start"),
        "output": ("k", "window_start", "window_end", "n", "mean", "final"),
        "timeless": ("k", "window_start", "window_end", "n", "mean"),
        "implied": (),
        "state_keys": ("k", "window_start"),
        "grid": Grid(column="window_start", size=timedelta(hours=1)),
    },
    "aggregate in hopping windows": {
        "view_keys": ("k", "window_start"),
        "by": ("k", "window_start"),
        "output": ("k", "window_start", "window_end", "n", "final"),
        "timeless": ("k", "window_start", "window_end", "n"),
        "implied": (),
        "state_keys": ("k", "_tile"),
        "grid": Grid(column="_tile", size=timedelta(minutes=10), reach=timedelta(minutes=50)),
    },
    "aggregate in hopping windows of before": {
        "view_keys": ("k", "window_start"),
        "by": ("k", "window_start"),
        "output": ("k", "window_start", "window_end", "n", "final"),
        "timeless": ("k", "window_start", "window_end", "n"),
        "implied": (),
        "state_keys": ("k", "window_start"),
        "grid": Grid(column="window_start", size=timedelta(minutes=10)),
    },
    "sessions": {
        "view_keys": ("k", "session_start"),
        "by": ("k",),
        "output": ("k", "session_start", "session_end", "n", "final"),
        "timeless": ("k", "session_start", "session_end", "n"),
        "implied": (),
        "state_keys": ("k", "_cell", "session_start"),
        "grid": Grid(column="_cell", size=timedelta(days=1)),
    },
    "aggregate in windows only": {
        "view_keys": ("window_start",),
        "by": ("window_start",),
        "output": ("window_start", "window_end", "n", "final"),
        "timeless": ("window_start", "window_end", "n"),
        "implied": (),
        "state_keys": ("window_start",),
        "grid": Grid(column="window_start", size=timedelta(days=1)),
    },
    "interval join": {
        "view_keys": (*LEFT, *RIGHT),
        "by": ("k",),
        "output": ("k", "y", *LEFT, *RIGHT, "_cell", "final"),
        "timeless": ("k", "y", *LEFT, *RIGHT, "_cell"),
        "implied": (*LEFT, *RIGHT, "_cell"),
        "state_keys": None,
        "grid": None,
    },
    "as-of join": {
        "view_keys": LEFT,
        "by": ("k",),
        "output": ("k", "y", *LEFT, *RIGHT, "_cell", "final"),
        "timeless": ("k", "y", *LEFT, *RIGHT, "_cell"),
        "implied": (*LEFT, *RIGHT, "_cell"),
        "state_keys": None,
        "grid": None,
    },
    "rolling": {
        "view_keys": ("last", "k"),
        "by": ("k",),
        "output": ("window_start", "window_end", "last", "k", "n", "mean"),
        "timeless": ("last", "k", "n", "mean"),
        "implied": (),
        "state_keys": None,
        "grid": None,
    },
    "union": {
        "view_keys": ("k", "window_start"),
        "by": ("k", "window_start"),
        "output": ("k", "window_start", "window_end", "n", "mean", "final"),
        "timeless": ("k", "window_start", "window_end", "n", "mean"),
        "implied": (),
        "state_keys": None,
        "grid": None,
    },
}
STORED: dict[str, dict[str, Any]] = {
    "derived": {
        "kind": "derived", "name": "t", "inputs": [], "reads": ["a", "b"], "columns": ["k", "n"],
        "keys": ["k"], "by": ["k"], "sql": "SELECT k, n FROM a JOIN b USING (k)", "broadcast": ["b"],
    },
    "events": {
        "kind": "events", "name": "t", "inputs": ["orders"], "where": "amount > 0",
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]], "store": None,
    },
    "events with a store": {
        "kind": "events", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]],
        "store": {
            "keys": ["k"], "on": "at", "cell": "1 hour", "back": "10 minutes", "ahead": "0 seconds",
        },
    },
    "latest": {
        "kind": "latest", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]],
        "keys": ["k"], "order": ["at"], "values": ["x", "at"], "delete_when": "x = 0",
        "snapshot": None, "truncate_when": None, "source_place": None,
    },
    "latest by the log": {
        "kind": "latest", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]],
        "keys": ["k"], "order": [], "values": ["x", "at"], "delete_when": None,
        "snapshot": None, "truncate_when": None, "source_place": None,
    },
    "top rows": {
        "kind": "top_rows", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]],
        "keys": ["k"], "order": ["at"], "rows": 3, "values": ["x"],
    },
    "history": {
        "kind": "history", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]],
        "keys": ["k"], "order": ["at"], "values": ["x"], "delete_when": "x = 0",
    },
    "history by the log": {
        "kind": "history", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]],
        "keys": ["at", "k"], "order": [], "values": ["x"], "delete_when": None,
    },
    "trailing": {
        "kind": "trailing", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]], "keys": ["k"], "on": "at",
        "last": [
            ["5 minutes", [["n", {"kind": "count", "of": None}], ["sum", {"kind": "sum", "of": "x"}]]],
            ["1 hour", [["later", {"kind": "count", "of": None}]]],
        ],
        "with_itself": True, "cell": "1 hour",
    },
    "aggregate": {
        "kind": "aggregate", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]],
        "explode": {"name": "part", "array": "split(status, ' ')"}, "window": None, "keys": ["k"],
        "measures": [["n", {"kind": "count", "of": None}], ["sum", {"kind": "sum", "of": "x"}]],
    },
    "aggregate in windows": {
        "kind": "aggregate", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]],
        "explode": None, "window": {"kind": "tumbling", "on": "at", "size": "PT1H"}, "keys": ["k"],
        "measures": [["n", {"kind": "count", "of": None}], ["mean", {"kind": "avg", "of": "x"}]],
    },
    "aggregate in hopping windows": {
        "kind": "aggregate", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]], "explode": None,
        "window": {
            "kind": "hopping", "on": "at", "size": "PT1H", "every": "10 minutes", "tiled": True,
        },
        "keys": ["k"], "measures": [["n", {"kind": "count", "of": None}]],
    },
    "aggregate in hopping windows of before": {
        "kind": "aggregate", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]], "explode": None,
        "window": {"kind": "hopping", "on": "at", "size": "PT1H", "every": "10 minutes"}, "keys": ["k"],
        "measures": [["n", {"kind": "count", "of": None}]],
    },
    "sessions": {
        "kind": "sessions", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]],
        "keys": ["k"], "on": "at", "gap": "30 minutes", "grid": "1 day",
        "measures": [["n", {"kind": "count", "of": None}]],
    },
    "aggregate in windows only": {
        "kind": "aggregate", "name": "t", "inputs": ["orders"], "where": None,
        "columns": [["k", "region"], ["x", "amount"], ["at", "ordered_at"]],
        "explode": None, "window": {"kind": "tumbling", "on": "at", "size": "1 day"}, "keys": [],
        "measures": [["n", {"kind": "count", "of": "x"}]],
    },
    "interval join": {
        "kind": "interval_join", "name": "t", "inputs": [], "left": "asks", "right": "hits", "on": ["k"],
        "how": "inner", "before": "5 minutes", "after": "0 seconds", "columns": [["y", "right.x"]],
    },
    "as-of join": {
        "kind": "as_of_join", "name": "t", "inputs": [], "left": "asks", "right": "hits", "on": ["k"],
        "how": "left", "delete_when": "x = 0", "columns": [["y", "right.x"]],
    },
    "rolling": {
        "kind": "rolling", "name": "t", "inputs": [], "of": "sums", "last": ["5 minutes", "1 day"],
    },
    "union": {"kind": "union", "name": "t", "inputs": [], "of": ["sums", "others"]},
}  # fmt: skip


def test_the_samples_are_of_every_kind() -> None:
    assert {table.kind for table in SAMPLES.values()} == set(KINDS)
    assert SAMPLES.keys() == EXPECTED.keys() == STORED.keys()


@pytest.mark.parametrize("what", SAMPLES)
def test_a_kind_says_what_identifies_and_makes_up_its_rows(what: str) -> None:
    table = SAMPLES[what]
    stored = is_stored(table)

    assert {
        **{name: getattr(table, name) for name in ("view_keys", "by", "output", "timeless", "implied")},
        "state_keys": table.state_keys if stored else None,
        "grid": grid_of(table),
    } == EXPECTED[what]
    assert stored == (what not in VIEWS)


@pytest.mark.parametrize("what", SAMPLES)
def test_the_rows_of_a_kind_are_identified_by_columns_that_it_shows(what: str) -> None:
    table = SAMPLES[what]

    assert {*table.view_keys, *table.by, *table.timeless, *table.implied} <= set(table.output)


@pytest.mark.parametrize("what", SAMPLES)
def test_stored_definitions_keep_their_form_and_come_back(what: str) -> None:
    """Lakes hold this JSON: another form needs a way to read the old one."""
    table = SAMPLES[what]

    assert table.to_json() == STORED[what]
    assert from_json(STORED[what]) == table and type(from_json(STORED[what])) is type(table)
