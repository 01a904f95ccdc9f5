"""A view kind computes nothing before it is read: verify and the gate read it whole, and say what raises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.releases.lake import Lake, order
from tests.releases.promised import promised_lake
from tests.releases.test_joins import GONE, PAID, REGRETS
from twinlake.base.errors import DifferenceError
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.lake.catalog import release_log

SQL = "CAST(1 / (order_id - 42) AS double)"
INVERSE = Events(name="inverse", inputs=("orders",), columns={"order_id": "order_id", "inverse": SQL})
SAFE = replace(INVERSE, columns={"order_id": "order_id", "inverse": "CAST(order_id AS double)"})
ABOVE = Derived(
    name="above", reads=("inverse",), columns=("order_id", "twice"), keys=("order_id",), by=("order_id",),
    sql="SELECT order_id, 2 * inverse AS twice FROM inverse",
)  # fmt: skip
OWN = replace(ABOVE, sql="SELECT order_id, CAST(1 / (order_id - 42) AS double) AS twice FROM inverse")
JOINED = replace(REGRETS, columns={"paid": "left.order_id", "ratio": "1 / (left.order_id - 42)"})
PROMISED = {
    "inverse": {"order_id": "bigint", "inverse": "double"},
    "above": {"order_id": "bigint", "twice": "double"},
    "paid": {"customer": "string", "order_id": "bigint", "at": "timestamp"},
    "gone": {"customer": "string", "order_id": "bigint", "at": "timestamp"},
    "regrets": {"customer": "string", "paid": "bigint", "ratio": "decimal(38,2)", "final": "boolean"},
}
RATIO = "CAST(1 / (left.order_id - 42) AS decimal(38,2))"


def tables(*made: Any) -> dict[str, Any]:
    return {table.name: table for table in made}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Orders 10 to 39, then 42 among others: its offset is 32."""
    with promised_lake(spark, tmp_path_factory.mktemp("raising"), PROMISED) as lake:
        lake.append([order(number) for number in range(10, 40)])
        lake.promote(lake.build(tables(INVERSE, PAID, GONE, joined())))
        lake.green = lake.build(tables(INVERSE, PAID, GONE, joined(), ABOVE))  # before the record is there
        lake.append([order(number) for number in range(40, 60)])
        yield lake


def joined() -> IntervalJoin:
    return replace(REGRETS, columns={"paid": "left.order_id", "ratio": RATIO})


def test_verify_names_table_column_error_and_record_and_status_shows_it(lake: Lake) -> None:
    with pytest.raises(DifferenceError) as found:
        lake.do("verify", table="inverse")

    error = found.value
    assert "inverse" in error.what and error.what.endswith("cannot be read")
    assert f"column inverse ({SQL}) raises for orders (epoch 0, partition 0, offset 32)" in error.why
    assert "DIVIDE_BY_ZERO" in error.why and "try_divide" in error.remedy
    (shown,) = (one for one in lake.server.status()["certificates"] if one["table"] == "inverse")
    assert not shown["equal"] and "offset 32" in shown["raises"]


def test_of_a_join_the_record_of_a_side_is_named(lake: Lake) -> None:
    with pytest.raises(DifferenceError) as found:
        lake.do("verify", table="regrets")

    assert f"table regrets: column ratio ({RATIO}) raises for orders (epoch 0, partition 0, offset 32)" in (
        found.value.why
    )


def test_a_version_that_raises_is_not_built(lake: Lake) -> None:
    """What the table that it reads raises is told of that one; what it raises itself, of its column."""
    with pytest.raises(DifferenceError) as below:
        lake.build(tables(INVERSE, PAID, GONE, joined(), replace(ABOVE, sql=f"{ABOVE.sql} WHERE true")))
    with pytest.raises(DifferenceError) as own:
        lake.build(tables(SAFE, PAID, GONE, joined(), OWN))

    assert "table inverse: column inverse" in below.value.why and "offset 32" in below.value.why
    assert "table above: column twice raises: [DIVIDE_BY_ZERO]" in own.value.why


def test_one_that_has_come_to_raise_since_it_was_built_is_not_promoted(lake: Lake) -> None:
    before = release_log.live(lake.path)

    with pytest.raises(DifferenceError, match="gate") as found:
        lake.promote(lake.green)

    assert "offset 32" in str(found.value)
    assert release_log.live(lake.path) == before


def test_the_release_that_corrects_a_raising_view_can_be_looked_at_and_made(lake: Lake) -> None:
    corrected = replace(REGRETS, columns={"paid": "left.order_id", "ratio": RATIO.replace("1 /", "1 + ")})
    plan = lake.build(tables(SAFE, PAID, GONE, corrected))

    diffs = {name: lake.do("diff", table=name, plan=plan) for name in ("inverse", "regrets")}
    lake.promote(plan)

    events, join = diffs["inverse"], diffs["regrets"]
    raises = f"column inverse ({SQL}) raises for orders (epoch 0, partition 0, offset 32)"
    assert raises in events["blue_raises"]
    assert "offset 32" in join["blue_raises"]
    for found in (events, join):  # the rows are there, but for the column that raises
        assert not found["equal"] and found["common"] == found["changed"] and not found["only_blue"]
        changed = {column["name"] for column in found["columns"] if column["changed"]}
        assert changed == {"inverse" if found is events else "ratio"}
    assert "Blue cannot be read" in Path(join["report"]).read_text()
    live = release_log.live(lake.path)
    assert live is not None and live.number == 2
