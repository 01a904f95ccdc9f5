"""What is behind a row, of every kind: the records that a plain loop over the log finds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.cli.json_shapes import wrong
from tests.history import LATEST, SALES
from tests.reading.test_past_tables import COLUMNS, KEPT, LATELY, PAID, SHARES, VISITS, History
from twinlake.base.errors import NotFoundError, UsageError
from twinlake.kinds.as_of_join import AsOfJoin
from twinlake.kinds.events import Events
from twinlake.kinds.history import History as Versions
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.store import Store
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.trailing import Trailing
from twinlake.kinds.windows import Tumbling
from twinlake.reading.explain import Question, explain
from twinlake.reference.json_output import COMMANDS

pytestmark = pytest.mark.faults
STORE = Store(keys=("customer",), on="at", cell="1 hour")
KEPT_PAID = Events(
    name="kept_paid", inputs=("orders",), columns=COLUMNS, where="status = 'paid'", store=STORE
)
JOINED = AsOfJoin(
    name="joined", left="kept", right="kept_paid", on=("customer",), how="inner",
    columns={"amount": "left.amount"},
)  # fmt: skip
LAST_TWO = TopRows(
    name="last_two", inputs=("orders",), columns=COLUMNS, keys=("customer",), order=("at",), rows=2,
    values=("amount",),
)  # fmt: skip
STATUSES = Versions(
    name="statuses", inputs=("orders",), columns={**COLUMNS, "status": "status"}, keys=("customer",),
    order=("at",), values=("status",),
)  # fmt: skip
PACES = Trailing(
    name="paces", inputs=("orders",), columns=COLUMNS, keys=("customer",), on="at",
    last={"20 seconds": {"lately": Count()}, "1 minute": {"orders": Count()}},
)  # fmt: skip
LOCAL = replace(
    SALES, name="local", window=Tumbling(on="ordered_at", size="1 day", time_zone="Asia/Kamchatka")
)
"""There it is midnight, just before the first records."""
TABLES: tuple[Kind, ...] = (
    SALES, LATEST, VISITS, KEPT, KEPT_PAID, PAID, SHARES, LATELY, JOINED, LAST_TWO, STATUSES,
    replace(STATUSES, name="followed", order=()), LOCAL, PACES,
)  # fmt: skip
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[History]:
    yield History(spark, tmp_path_factory.mktemp("behind") / "lake", seed, TABLES)


def text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value)


def offset(record: dict[str, Any]) -> int:
    found: int = record["_offset"]
    return found


def minute(record: dict[str, Any]) -> datetime:
    at: datetime = record["ordered_at"]
    return at.replace(second=0, microsecond=0)


TIMES = {"statuses": "ordered_at", "followed": "_timestamp"}
"""By a table with versions, the time of a record that they go by."""


def is_of_version(table: str, row: dict[str, Any], one: dict[str, Any]) -> bool:
    """Whether the record is of the version, or of the time at which it ended."""
    begun, ended = row["valid_from"], row["valid_to"]
    at = one[TIMES[table]].astimezone(UTC)
    return bool(row["customer"] == one["customer"] and begun <= at and (ended is None or at <= ended))


def decides(table: str, row: dict[str, Any], behind: list[dict[str, Any]]) -> int | None:
    """The offset of the record whose row it is; None where all of them made it."""
    newest = sorted(behind, key=lambda one: (one["ordered_at"], offset(one)), reverse=True)
    if table in ("latest_order", "last_two"):
        return offset(newest[row.get("place", 1) - 1])
    if table in TIMES:  # it began the version; of those at one time the last
        return max(offset(one) for one in behind if one[TIMES[table]].astimezone(UTC) == row["valid_from"])
    return None


BEHIND: dict[str, Callable[[Any, dict[str, Any]], bool]] = {
    "sales_per_region": lambda row, one: (row["region"], row["window_start"]) == (one["region"], minute(one)),
    "local": lambda row, one: (
        row["region"] == one["region"] and row["window_start"] <= one["ordered_at"] < row["window_end"]
    ),
    "latest_order": lambda row, one: row["customer"] == one["customer"],
    "last_two": lambda row, one: row["customer"] == one["customer"],
    "statuses": lambda row, one: is_of_version("statuses", row, one),
    "followed": lambda row, one: is_of_version("followed", row, one),
    "visits": lambda row, one: (
        row["customer"] == one["customer"] and row["session_start"] <= one["ordered_at"] <= row["session_end"]
    ),
    "paces": lambda row, one: (
        row["customer"] == one["customer"] and timedelta(0) <= row["at"] - one["ordered_at"] <= MINUTE
    ),
    "paid": lambda row, one: row["_offset"] == offset(one),
    "kept": lambda row, one: row["_offset"] == offset(one),
    # of sales its region's rows; `paid` has no region, so all of its rows are behind each
    "shares": lambda row, one: row["region"] == one["region"] or one["status"] == "paid",
    "joined": lambda row, one: offset(one) in (row["_left_offset"], row["_right_offset"]),
}


@pytest.mark.parametrize("table", BEHIND)
def test_the_records_behind_a_row_are_those_that_a_loop_over_the_log_finds(
    history: History, seed: int, table: str
) -> None:
    kind = next(one for one in TABLES if one.name == table)
    with history.past.texts(None, {table}) as made:
        sql = made.shown(made.versions[0]).sql
    drawn = random.Random(seed).choice(history.spark.sql(sql).collect()).asDict()
    row = {name: one.astimezone(UTC) if isinstance(one, datetime) else one for name, one in drawn.items()}

    key = {name: text(row[name]) for name in kind.view_keys}
    found = explain(history.past, Question(table=table, key=key))

    assert wrong(COMMANDS["explain"], found) == []
    expected = [one for one in history.records(history.log.end()) if BEHIND[table](row, one)]
    (partition,) = found["partitions"]
    assert [one["offset"] for one in found["records"]] == sorted(map(offset, expected))[:20]
    assert [one["id"] for one in found["records"]] == [f"e{one['offset']}" for one in found["records"]]
    assert (partition["topic"], partition["partition"], partition["records"]) == ("orders", 0, len(expected))
    decided = found["decided"]
    assert (decided and decided["offset"]) == decides(table, row, expected)
    offsets = sorted(map(offset, expected))
    assert (partition["first_offset"], partition["last_offset"]) == (offsets[0], offsets[-1])


def test_the_way_through_tables_is_told_and_a_row_is_explained_as_it_was(history: History) -> None:
    key = {"region": history.records(1)[0]["region"]}  # it has a row at the first position, too

    now = explain(history.past, Question(table="shares", key=key))
    then = explain(history.past, Question(table="shares", key=key, as_of="position:orders=1"))

    assert now["partitions"][0]["through"] == ["shares < paid", "shares < sales_per_region"]
    assert (then["position"], then["partitions"][0]["last_batch"]) == ({"orders": 1}, 1)
    assert then["partitions"][0]["records"] < now["partitions"][0]["records"]


@pytest.mark.parametrize(
    ("table", "key", "error", "says"),
    [
        ("nothing", {"a": "b"}, NotFoundError, "latest_order"),
        ("latest_order", {"region": "north"}, UsageError, "customer (string)"),
        ("latest_order", {}, UsageError, "customer (string)"),
        ("latest_order", {"customer": "nobody"}, NotFoundError, "no row with this key"),
        ("latest_order", {"customer": None}, NotFoundError, "no row with this key"),
        ("paid", {"_epoch": "0", "_partition": "0", "_offset": "x"}, UsageError, "bigint"),
        ("sales_per_region", {"region": "north", "window_start": "noon"}, UsageError, "is not a time"),
        ("latest_order", {"customer": "' OR true --"}, NotFoundError, "no row with this key"),
    ],
)
def test_a_key_that_is_none_is_refused_with_those_there_are(
    history: History, table: str, key: dict[str, str | None], error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as raised:
        explain(history.past, Question(table=table, key=key))

    assert says in str(raised.value)
