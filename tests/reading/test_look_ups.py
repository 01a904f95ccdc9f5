"""Look-ups by key: the rows of the view, whatever the kind, key and type, while the lake goes on."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import twinlake
from tests.history import LATEST, SALES
from tests.reading.conftest import ALL, PAID, PASSWORD, Released, SqlServer, started
from tests.reading.test_past_tables import BATCHES, KEPT, LATELY, VISITS, History
from tests.reading.test_past_tables import PAID as PAID_ORDERS
from tests.written_log import write_batch
from twinlake.base.errors import NotFoundError, TimedOutError, UsageError
from twinlake.batch.merge import merge_small
from twinlake.cli.app import build_app
from twinlake.config import users
from twinlake.config.rights import Rights
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.derived import Derived
from twinlake.kinds.history import History as Versions
from twinlake.kinds.kind import Kind
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.windows import Hopping
from twinlake.lake.catalog.maintained_version import MaintainedVersion, open_version
from twinlake.lake.catalog.version import Version
from twinlake.reading.client import Until, look_up
from twinlake.reading.look_up_route import OF_ONE_USER
from twinlake.speed.advance import Standing, advance, close

pytestmark = pytest.mark.faults
MOST = 12
"""Rows of one answer, in the server of these tests."""
SQLS_OWN = "ben"
"""Who is held to rows there, which are all, and so does not look up directly."""
PROGRAM = f"""
from twinlake.reading import look_ups
look_ups.MOST_ROWS = {MOST}
from twinlake.reading.__main__ import main
main()
"""
HOPPING = Aggregate(
    name="hopping", inputs=("orders",), keys=("region", "status"),
    columns={
        "region": "nullif(region, 'north')", "status": "status", "at": "ordered_at", "amount": "amount",
        "customer": "customer", "price": "cast(amount AS double)",
    },
    window=Hopping(on="at", size="3 minutes", every="1 minute"),
    measures={
        "n": Count(), "exact": CountDistinct("customer", exact=True), "sketch": CountDistinct("customer"),
        "top": TopK("customer", most=2), "median": Quantile("price", q=0.5),
        "sales": Sum("amount"), "mean": Avg("price"),
    },
)  # fmt: skip
LOCAL = replace(
    HOPPING, name="local", window=Hopping(on="at", size="3 days", every="1 day", time_zone="Asia/Kamchatka")
)
TYPES = {
    "flag": "order_id % 2 = 0", "tiny": "cast(order_id % 3 AS tinyint)",
    "small": "cast(order_id % 4 AS smallint)", "number": "cast(order_id % 5 AS int)",
    "big": "nullif(order_id, 3)", "price": "amount",
    "ratio": "cast(order_id AS double) / 4 - 1", "single": "cast(order_id AS float) / 2",
    "day": "date_add(DATE'2026-01-31', cast(order_id % 3 AS int))", "at": "ordered_at",
    "word": "nullif(concat('a b&=', region), 'a b&=east')",
}  # fmt: skip
TYPED = Latest(
    name="typed", inputs=("orders",), columns={**TYPES, "customer": "customer"}, keys=tuple(TYPES),
    order=("at",), values=("customer",),
)  # fmt: skip
SHARES = Derived(
    name="shares", reads=("sales_per_region", "paid"), columns=("region", "orders", "paid"), keys=("region",),
    by=("region",),
    sql="SELECT region, sum(orders) AS orders, max(n) AS paid FROM sales_per_region "
    "CROSS JOIN (SELECT count(*) AS n FROM paid) GROUP BY region",
)  # fmt: skip
STATUSES = Versions(
    name="statuses", inputs=("orders",), columns={"customer": "customer", "status": "status"},
    keys=("customer",), values=("status",),
)  # fmt: skip
TABLES: tuple[Kind, ...] = (
    SALES, LATEST, VISITS, KEPT, PAID_ORDERS, SHARES, LATELY, HOPPING, LOCAL, TYPED, STATUSES,
)  # fmt: skip
PLANNED = {
    "sales_per_region", "latest_order", "visits", "kept", "hopping", "local", "typed", "paid", "statuses",
}
"""Those whose look-ups a prepared plan answers; of others it depends on what Spark plans."""


class Fed(History):
    """Its versions can be advanced further."""

    def _advanced(self, version: Version, draw: random.Random) -> set[int]:
        feed = open_version(self.lake, version, {"orders": self.log})
        assert isinstance(feed, MaintainedVersion)
        at = advance(feed, Standing(), 2)
        self.fed: dict[str, tuple[MaintainedVersion, Standing]] = getattr(self, "fed", {})
        self.fed[version.table] = feed, advance(feed, at, BATCHES)
        return set()

    def more(self, later: timedelta = timedelta(), **fields: str) -> int:
        """Another batch, in every table; its number. Its watermark is so much later than its time."""
        batch = self.log.end() + 1
        watermark = 1769860800 + 60 * batch + int(later.total_seconds())
        write_batch(self.log, 9, {}, watermark * 1_000_000, **fields)
        for table, (feed, at) in self.fed.items():
            self.fed[table] = feed, advance(feed, at, self.log.end())
        return self.log.end()


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int) -> Fed:
    made = Fed(spark, tmp_path_factory.mktemp("looked") / "lake", seed, TABLES)
    made.more()  # by its watermark windows are final, and others are the last ones
    return made


@pytest.fixture(scope="module")
def server(history: Fed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    made = SqlServer(
        home=history.lake.parent, scratch=tmp_path_factory.mktemp("scratch"), program=("-c", PROGRAM)
    )
    with started(made):
        users.set_rights(
            made.scratch / "password", SQLS_OWN, Rights(rows={table.name: "true" for table in TABLES})
        )
        yield made


def get(server: SqlServer, table: str, *key: str, user: str = "analyst", **more: Any) -> httpx.Response:
    return httpx.get(
        f"{server.url}/tables/{table}/rows", params={"key": [*key], **more}, timeout=120, trust_env=False,
        auth=(user, PASSWORD),
    )  # fmt: skip


def text(name: str, value: Any) -> str:
    """A value of JSON as a key has it."""
    if value is None:
        return name
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def keys_of(
    view_keys: tuple[str, ...], rows: list[dict[str, Any]], draw: random.Random
) -> Iterator[dict[str, Any]]:
    """Whole keys, and parts of them."""
    for row in draw.sample(rows, min(3, len(rows))):
        yield {name: row[name] for name in view_keys}
        yield {name: row[name] for name in draw.sample(view_keys, draw.randint(1, len(view_keys)))}
    yield {view_keys[0]: None}


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def assert_as_the_view(server: SqlServer, kind: Kind, seed: int, user: str = "analyst") -> None:
    whole = server.ask(f"SELECT * FROM serve.{kind.name}", 10_000)
    assert whole.is_success, whole.text
    rows = whole.json()["rows"]
    assert rows
    view_keys = kind.bound({one.name: one for one in TABLES}).view_keys
    for key in keys_of(view_keys, rows, random.Random(seed)):
        expected = [row for row in rows if all(row[name] == value for name, value in key.items())]

        answer = get(server, kind.name, *(text(*one) for one in key.items()), user=user)

        if len(expected) > MOST:
            assert (answer.status_code, answer.json()["error"]) == (400, "UsageError")
            assert f"more than {MOST} rows" in answer.json()["why"]
            continue
        assert answer.status_code == 200, (key, answer.text)
        assert ordered(answer.json()["rows"]) == ordered(expected), key
        assert [column["name"] for column in answer.json()["columns"]] == [*rows[0]]
        way = answer.headers["x-twinlake-way"]
        assert way == ("sql" if user == SQLS_OWN else "plan") or kind.name not in PLANNED


@pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.name)
def test_a_look_up_has_the_rows_that_the_view_has(
    server: SqlServer, history: Fed, seed: int, kind: Kind
) -> None:
    assert_as_the_view(server, kind, seed)
    history.more(region="if(id % 2 = 0, 'west', 'north')")

    assert_as_the_view(server, kind, seed + 1)


def test_who_may_not_look_up_directly_gets_the_same_by_the_view(server: SqlServer, seed: int) -> None:
    assert_as_the_view(server, LATEST, seed, SQLS_OWN)
    assert_as_the_view(server, TYPED, seed, SQLS_OWN)


def test_small_segments_that_were_merged_change_no_row(server: SqlServer, history: Fed, seed: int) -> None:
    for _ in range(3):
        history.more()
        feed, at = history.fed["latest_order"]
        history.fed["latest_order"] = feed, (at := close(feed, at))
    assert merge_small(feed, at.segment) is not None

    assert_as_the_view(server, LATEST, seed)


def test_an_answer_says_of_which_release_and_position_it_is(server: SqlServer, history: Fed) -> None:
    now = history.more()
    for table, user in (("latest_order", "analyst"), ("latest_order", SQLS_OWN), ("shares", "analyst")):
        key = "region=north" if table == "shares" else "customer=c1"
        found = get(server, table, key, user=user).json()
        told = {name: found[name] for name in ("release", "position", "stalled", "truncated")}
        assert told == {"release": 1, "position": {"orders": now}, "stalled": [], "truncated": False}
        assert found["no_report"]["seconds"] > 0


@pytest.mark.parametrize(
    ("table", "key", "status", "says"),
    [
        ("latest_ordr", ["customer=c1"], 404, "did you mean latest_order?"),
        ("latest_order", [], 400, "its key columns are customer"),
        ("latest_order", ["region=north"], 400, "its key columns are customer"),
        ("latest_order", ["customer=c1", "customer=c2"], 400, "given twice"),
        ("typed", ["number=many"], 400, "its type is int"),
        ("typed", ["at=noon"], 400, "noon"),
        ("typed", ["big=99999999999999999999"], 400, "its type is bigint"),
        ("typed", ["day=2026-02-31"], 400, "its type is date"),
        ("shares", ["x=1"], 400, "its key columns are region"),
        ("latest_order", ["customer=' OR true --"], 200, '"rows":[\n]'),
    ],
)
def test_what_is_no_key_is_refused_in_words(
    server: SqlServer, table: str, key: list[str], status: int, says: str
) -> None:
    answer = get(server, table, *key)

    assert (answer.status_code, says in answer.text) == (status, True), answer.text
    assert status == 200 or {"what", "why", "remedy"} <= {*answer.json()}


def test_nobody_looks_up_without_the_password(server: SqlServer) -> None:
    answer = httpx.get(
        f"{server.url}/tables/latest_order/rows", params={"key": "customer=c1"}, trust_env=False
    )

    assert answer.status_code == 401


def test_a_service_reads_what_it_has_written_once_the_table_has_passed_it(
    server: SqlServer, history: Fed
) -> None:
    wanted = history.log.end() + 1
    later = threading.Timer(1.0, lambda: history.more(customer="'me'"))
    later.start()

    answer = get(server, "latest_order", "customer=me", min_position=f"orders={wanted}", wait_seconds=60)

    later.join()
    assert answer.json()["position"]["orders"] >= wanted
    assert [row["customer"] for row in answer.json()["rows"]] == ["me"]


def test_who_waits_for_a_position_waits_no_longer_than_was_said(server: SqlServer, history: Fed) -> None:
    began = time.monotonic()
    answer = get(server, "shares", "region=north", min_position="orders=1000000", wait_seconds=0.5)

    assert time.monotonic() - began < 10
    assert (answer.status_code, answer.json()["error"]) == (504, "TimedOutError")
    assert answer.json()["what"] == "shares has not passed orders=1000000"
    assert f"orders={history.log.end()}" in answer.json()["why"]
    assert get(server, "latest_order", "customer=c1", min_position="payments=1").status_code == 400
    assert get(server, "latest_order", "customer=c1", min_position="soon").status_code == 400
    assert get(server, "latest_order", "customer=c1", wait_seconds=61).status_code == 400
    unknown = get(server, "latest_order", "customer=c1", as_of="release:1", limit="1")
    assert unknown.status_code == 400 and "no parameter as_of, limit" in unknown.json()["why"]


def test_so_many_may_wait_for_a_position(server: SqlServer) -> None:
    """Those of one user leave room for others, who are answered meanwhile."""
    url = f"{server.url}/tables/latest_order/rows"
    params = {"key": "customer=c1", "min_position": "orders=1000000", "wait_seconds": "8"}

    async def ask() -> list[int]:
        async with httpx.AsyncClient(
            auth=("analyst", PASSWORD), timeout=60, trust_env=False, limits=httpx.Limits(max_connections=None)
        ) as client:
            many = [client.get(url, params=params) for _ in range(OF_ONE_USER + 5)]
            return [one.status_code for one in await asyncio.gather(*many)]

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(asyncio.run, ask())
        time.sleep(2)
        began = time.monotonic()
        assert get(server, "latest_order", "customer=c1", user="ben").is_success
        took = time.monotonic() - began
    assert sorted(waiting.result()) == [503] * 5 + [504] * OF_ONE_USER
    assert took < 4


def test_clients_at_once_get_their_own_rows(server: SqlServer) -> None:
    def ask(number: int) -> set[str]:
        customers = [f"c{(number + turn) % 6}" for turn in range(25)]
        found = {one: get(server, "latest_order", f"customer={one}").json()["rows"] for one in customers}
        return {f"{one}: {[row['customer'] for row in rows]}" for one, rows in found.items()}

    with ThreadPoolExecutor(8) as clients:
        found = set().union(*clients.map(ask, range(8)))

    assert found == {f"c{number}: ['c{number}']" for number in range(6)}


def test_python_and_the_command_look_up_the_same(
    server: SqlServer, history: Fed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (expected,) = get(server, "latest_order", "customer=c1").json()["rows"]
    monkeypatch.setenv("TWINLAKE_SQL_URL", server.url)
    monkeypatch.setenv("TWINLAKE_SQL_USER", "analyst")
    monkeypatch.setenv("TWINLAKE_SQL_PASSWORD", PASSWORD)
    at = history.log.end()

    rows = twinlake.read("latest_order", key={"customer": "c1"}, columns=("customer", "order_id"))
    typed = twinlake.read("typed", key={"flag": True, "big": 4, "word": None})
    waited = twinlake.read(
        "latest_order", key={"customer": None}, min_position=f"orders={at}", wait_seconds=5
    )

    assert rows.to_pylist() == [{name: expected[name] for name in ("customer", "order_id")}]
    assert twinlake.metadata(rows)["position"] == {"orders": at}
    assert {row["flag"] for row in typed.to_pylist()} <= {True} and waited.num_rows == 0
    said = CliRunner().invoke(build_app("get"), ["get", "latest_order", "customer=c1", "--json"])
    assert said.exit_code == 0, said.output
    assert [row["order_id"] for row in json.loads(said.stdout)] == [expected["order_id"]]
    with pytest.raises(UsageError, match="neither"):
        twinlake.read("latest_order", key={"customer": "c1"}, where="true")
    with pytest.raises(TimedOutError, match="has not passed orders=9999"):
        look_up(
            server.services,
            "latest_order",
            {"customer": "c1"},
            Until(min_position="orders=9999", wait_seconds=0.1),
        )
    with pytest.raises(NotFoundError, match="did you mean latest_order"):
        look_up(server.services, "latest_ordr", {"customer": "c1"})


def test_a_look_up_during_a_switch_is_of_one_release(sql: SqlServer, released: Released) -> None:
    ending, seen = threading.Event(), set[tuple[int, int]]()
    of_all, of_paid = ALL // 5, ALL // 5 - (ALL - PAID)  # every cancelled order is of this region

    def poll() -> None:
        while not ending.is_set():
            found = get(sql, "sales_per_region", "region=r0").json()
            seen.add((found["release"], sum(row["orders"] for row in found["rows"])))

    client = threading.Thread(target=poll)
    client.start()
    expected = set[tuple[int, int]]()
    for turn in range(8):
        made = released.promote((released.paid_orders, released.all_orders)[turn % 2])
        expected.add((made.number, (of_paid, of_all)[turn % 2]))
        sql.wait_until(lambda status, number=made.number: status["release"] == number)  # type: ignore[misc]
        time.sleep(1.0)
    ending.set()
    client.join(120)

    first = min(number for number, _ in expected)
    assert {one for one in seen if one[0] >= first} <= expected
    assert len(seen & expected) > 2


def test_a_table_that_is_not_theirs_is_not_there(server: SqlServer) -> None:
    """Nor among the near names, nor by how far it is; what is masked is looked up by its mask."""
    file = server.scratch / "password"
    users.set_rights(file, "ben@elsewhere", Rights(tables=("typed",), masks={"typed.word": "null"}))
    try:
        for more in ({}, {"min_position": "orders=1"}, {"min_position": "orders=999999", "wait_seconds": 5}):
            there = get(server, "latest_order", "customer=c1", user="ben@elsewhere", **more)
            none = get(server, "latest_ordex", "customer=c1", user="ben@elsewhere", **more)
            assert (there.status_code, none.status_code) == (404, 404)
            assert there.text.replace("latest_order", "X") == none.text.replace("latest_ordex", "X")
        found = get(server, "typed", "word=a b&=west", user="ben@elsewhere")
        assert found.is_success and found.json()["rows"] == []
    finally:
        users.set_rights(file, "ben@elsewhere", Rights())
