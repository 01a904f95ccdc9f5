"""What the project and the gallery define is listed: no expression and no SELECT of theirs is refused."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.project import PROJECT
from twinlake.config.project import Project
from twinlake.topics.topic import load_topic
from twinlake.witness.expressions import translate
from twinlake.witness.select import translate_select
from twinlake.witness.types import BIGINT, BOOLEAN, STRING, TIMESTAMP, Type

FILES = sorted([*PROJECT.glob("jobs/tables/[!_]*.py"), *PROJECT.glob("examples/*/jobs/tables/[!_]*.py")])
DEFINED = {
    f"{file.parent.parent.parent.name}/{file.stem}": (
        file.parent.parent.parent,
        runpy.run_path(str(file))["TABLE"].to_json(),
    )
    for file in FILES
}
STEPPED = [name for name, (_, data) in DEFINED.items() if data.get("inputs")]
DERIVED = [name for name, (_, data) in DEFINED.items() if "sql" in data]
SHOWN: Mapping[str, Mapping[str, str]] = {
    "card_hours": {"merchants": "bigint", "countries": "bigint", "largest": "decimal(10,2)"},
    "card_amounts": {"median": "double"},
    "songs_lately": {"plays": "bigint"},
    "items_shipped": {"shipped": "decimal(38,0)"},
    "items_sold": {"sold": "decimal(38,0)"},
    "stock_on_hand": {"on_hand": "decimal(38,0)", "back_ordered": "decimal(38,0)"},
    "customers_now": {"id": "bigint"},
    "orders_now": {"id": "bigint", "customer_id": "bigint", "amount": "decimal(10,2)"},
    "prices_per_day": {"volume": "decimal(38,0)"},
    "truck_now": {"load_kg": "bigint"},
    "user_sales": {"sales": "decimal(38,2)", "purchases": "bigint"},
}
"""Columns that tables show which are no texts; `window_start` is a timestamp everywhere."""
TEXTS = ("card", "song", "item", "name", "city", "symbol", "region", "user", "location", "last")


def _columns(data: Mapping[str, Any]) -> dict[str, str]:
    found = data["columns"]
    return dict(found) if isinstance(found, list) else found


@pytest.mark.parametrize("name", STEPPED)
def test_every_expression_is_listed(name: str) -> None:
    folder, data = DEFINED[name]
    topic = load_topic(data["inputs"][0], Project.load(Path(folder)))
    types = {column.name: Type.parse(column.type) for column in topic.contract.columns}
    types |= {"_key": STRING, "_timestamp": TIMESTAMP, "_tombstone": BOOLEAN}
    if explode := data.get("explode"):
        types[explode["name"]] = translate(explode["array"], types).type.element

    if where := data.get("where"):
        assert translate(where, types).type == BOOLEAN
    for text in _columns(data).values():
        assert translate(text, types).sql


@pytest.mark.parametrize("name", DERIVED)
def test_every_select_is_listed(name: str) -> None:
    _, data = DEFINED[name]
    tables = {
        table: dict.fromkeys(TEXTS, STRING)
        | {"window_start": TIMESTAMP}
        | {column: Type.parse(type_) for column, type_ in SHOWN.get(table, {}).items()}
        for table in data["reads"]
    }
    for columns in tables.values():
        columns.setdefault("place", BIGINT)

    found = translate_select(data["sql"], tables)

    assert list(found.columns) == list(data["columns"])
