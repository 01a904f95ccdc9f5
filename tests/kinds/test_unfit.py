"""A kind that reads tables says itself which it cannot read, by what these say of themselves."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import pytest

from tests.project import PROJECT
from twinlake.base.errors import DefinitionError
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.all import KINDS
from twinlake.kinds.dependencies import ordered
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.picks import First
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.store import Store
from twinlake.kinds.union import Union
from twinlake.kinds.windows import Hopping, Tumbling

COLUMNS = {"customer": "customer", "at": "ordered_at"}
ASKS = Events(
    name="asks", inputs=("orders",), columns=COLUMNS,
    store=Store(keys=("customer",), on="at", cell="1 hour"),
)  # fmt: skip
HITS = replace(ASKS, name="hits", store=None)
NEWEST = Latest(
    name="hits", inputs=("orders",), columns=COLUMNS, keys=("customer",), order=("at",), values=("at",)
)
SHOWN = Derived(
    name="hits", reads=("asks",), columns=("customer",), keys=("customer",), by=(),
    sql="SELECT customer FROM asks",
)  # fmt: skip
NEAR = IntervalJoin(name="near", left="asks", right="hits", on=("customer",), columns={"at": "left.at"})
MINUTES = Aggregate(
    name="minutes", inputs=("orders",), columns=COLUMNS, keys=("customer",), measures={"n": Count()},
    window=Tumbling(on="at", size="1 minute"),
)  # fmt: skip
VISITS = Sessions(
    name="minutes", inputs=("orders",), columns=COLUMNS, keys=("customer",), on="at", gap="1 minute",
    measures={"n": Count()},
)  # fmt: skip
LATELY = Rolling(name="lately", of="minutes", last=("5 minutes",))
HOPS = Hopping(on="at", size="1 minute", every="30 seconds")


@pytest.mark.parametrize("right", [HITS, NEWEST, SHOWN], ids=lambda table: table.kind)
def test_a_join_over_what_keeps_no_rows_for_it_says_how_to_keep_them(right: Any) -> None:
    with pytest.raises(DefinitionError) as refused:
        ordered([ASKS, right, NEAR])

    assert refused.value.why_text == (
        "it reads hits, which does not keep its rows where a join looks for them"
    )
    assert refused.value.remedy == (
        "make hits a table of Events with a store, or join its view in the SQL of a Derived"
    )


@pytest.mark.parametrize(
    "of",
    [
        replace(MINUTES, window=None),
        replace(MINUTES, window=HOPS),
        VISITS,
        replace(SHOWN, name="minutes"),
        replace(LATELY, name="minutes", of="seconds"),
    ],
    ids=["no window", "windows that overlap", "sessions", "a view", "rolling ones"],
)
def test_rolling_windows_are_over_windows_that_add_up_and_over_nothing_else(of: Any) -> None:
    with pytest.raises(DefinitionError) as refused:
        ordered([LATELY, ASKS, of, replace(MINUTES, name="seconds")])

    assert refused.value.why_text == "it reads minutes, which is no Aggregate in tumbling windows"
    assert refused.value.remedy == "give minutes window=Tumbling(...), or name an Aggregate that has one"


def test_what_fits_is_ordered_and_bound() -> None:
    *_, near, lately = ordered([replace(ASKS, name="hits"), ASKS, MINUTES, NEAR, LATELY])

    assert lately.view_keys == ("last", "customer") and lately.timeless == ("last", "customer", "n")
    assert near.output[:2] == ("customer", "at")


def test_nobody_asks_which_kind_a_table_is() -> None:
    names = {kind.__name__ for kind in KINDS.values()}

    asked = [
        f"{path.relative_to(PROJECT)}:{call.lineno}"
        for folder in ("jobs", "twinlake", "dags")
        for path in sorted((PROJECT / folder).rglob("*.py"))
        if not path.is_relative_to(PROJECT / "twinlake" / "kinds" / "sql_form")  # a form for each kind
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "isinstance"
        if names & {node.id for node in ast.walk(call.args[1]) if isinstance(node, ast.Name)}
    ]

    assert asked == []


TOTALS = replace(MINUTES, name="totals", window=None)
RETURNED = replace(
    TOTALS, name="returned", inputs=("returns",), columns={"customer": "buyer", "at": "returned_at"}
)
BOTH = Union(name="both", of=("totals", "returned"))


def test_a_union_is_of_tables_that_differ_in_topics_and_steps_alone() -> None:
    (*_, bound) = ordered([TOTALS, RETURNED, BOTH])

    assert bound.output == ("customer", "n") and bound.view_keys == bound.by == ("customer",)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (replace(RETURNED, keys=("customer", "at")), "totals and returned differ in their keys"),
        (replace(RETURNED, measures={"n": Count("at")}), "totals and returned differ in their measures"),
        (replace(RETURNED, window=Tumbling(on="at", size="1 minute")), "differ in their window"),
        (replace(NEWEST, name="returned", inputs=("returns",)), "totals and returned differ in their kind"),
        (replace(TOTALS, name="returned"), "totals and returned are both of topic orders"),
        (replace(ASKS, name="returned", inputs=("returns",)), "a table of kind events cannot be shown with"),
        (replace(SHOWN, name="returned"), "a table of kind derived cannot be shown with others as one"),
        (replace(RETURNED, measures={"n": First("at")}), "measure n (first) follows the log"),
        (replace(NEWEST, name="returned", order=()), "it follows the log, whose order two topics"),
    ],
)  # fmt: skip
def test_a_union_says_what_two_tables_do_not_share(other: Any, why: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        ordered([TOTALS, ASKS, other, BOTH])

    assert why in refused.value.why_text and refused.value.remedy


def test_a_union_of_windows_that_end_by_one_topics_watermark_is_refused() -> None:
    kept = replace(MINUTES, name="totals", retention="400 days")

    with pytest.raises(DefinitionError) as refused:
        ordered([kept, replace(kept, name="returned", inputs=("returns",)), BOTH])

    assert (refused.value.table, refused.value.remedy) == ("both", "leave retention out")


@pytest.mark.parametrize(("of", "why"), [((), "of no tables"), (("totals",), "of fewer than two tables")])
def test_a_union_of_fewer_than_two_is_none(of: tuple[str, ...], why: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        Union(name="both", of=of)

    assert why in refused.value.why_text
    assert refused.value.remedy == 'name two, like of=("web_sales", "app_sales")'
