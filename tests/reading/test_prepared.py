"""A statement that is asked again is answered by the plan that is there, while nothing has changed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from tests.history import LATEST, SALES, version_of
from tests.reading.conftest import PASSWORD, SqlServer, connected, over_jdbc, started
from tests.reading.test_look_ups import Fed
from twinlake.base.passwords import hashed
from twinlake.config import users
from twinlake.config.rights import Rights
from twinlake.kinds.kind import Kind
from twinlake.kinds.rolling import Rolling

LATELY = Rolling(name="lately", of="sales_per_region", last=("3 minutes",))
TABLES: tuple[Kind, ...] = (SALES, LATEST, LATELY)
BY_TASKS = "ben"
"""Who is held to rows there, which are all: no plan is kept for such a user."""
COUNT = "SELECT sum(orders) AS n FROM serve.sales_per_region"


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int) -> Fed:
    made = Fed(spark, tmp_path_factory.mktemp("prepared") / "lake", seed, TABLES)
    made.more()
    return made


@pytest.fixture(scope="module")
def server(history: Fed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    made = SqlServer(home=history.lake.parent, scratch=tmp_path_factory.mktemp("scratch"))
    with started(made):
        held = Rights(rows={table.name: "true" for table in TABLES})
        users.set_rights(made.scratch / "password", BY_TASKS, held)
        yield made


@pytest.fixture(scope="module")
def client(server: SqlServer) -> Iterator[httpx.Client]:
    """One connection, which stays open."""
    with httpx.Client(base_url=server.url, trust_env=False, timeout=120) as made:
        yield made


Asking = Callable[..., httpx.Response]


@pytest.fixture
def ask(client: httpx.Client) -> Asking:
    def asked(sql: str, user: str = "analyst", password: str = PASSWORD, **more: Any) -> httpx.Response:
        return client.post(
            "/query", json={"sql": sql, **more}, auth=(user, password), headers={"X-Twinlake-Query": "1"}
        )  # fmt: skip

    return asked


def rows(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.is_success, answer.text
    found: list[dict[str, Any]] = answer.json()["rows"]
    return found


def way(answer: httpx.Response) -> str:
    return answer.headers["x-twinlake-way"]


def kept(ask: Asking, sql: str, user: str = "analyst") -> httpx.Response:
    """The answer by a plan that was there: it is kept from the second time on."""
    for _ in range(2):
        rows(ask(sql, user))
    found = ask(sql, user)
    assert way(found) == "plan", sql
    return found


@pytest.mark.parametrize(
    "sql",
    [
        COUNT,
        "SELECT * FROM serve.sales_per_region ORDER BY region, window_start",
        "SELECT region, count_if(final) AS n, max(largest) AS m FROM sales_per_region GROUP BY 1 ORDER BY 1",
        "SELECT customer, customer, rank() OVER (ORDER BY order_id) AS n FROM latest_order ORDER BY n",
        "WITH a AS (SELECT region, orders FROM sales_per_region WHERE orders > 0) "
        "SELECT region, sum(orders) AS n FROM a GROUP BY region HAVING n > 1 ORDER BY region",
        "SELECT count(*) AS n FROM serve.latest_order WHERE ordered_at >= TIMESTAMP '2026-01-31 12:01:00'",
        "SELECT x.a AS a FROM (SELECT explode(array(1, 2)) AS a FROM serve.latest_order) x ORDER BY a",
        "SELECT window_start, sum(orders) AS n FROM release_1.sales_per_region GROUP BY ALL ORDER BY 1",
    ],
)  # fmt: skip
def test_a_plan_that_is_kept_answers_as_the_tasks_do_whatever_came_meanwhile(
    ask: Asking, history: Fed, sql: str
) -> None:
    kept(ask, sql)
    history.more()
    history.more()

    found, expected = ask(sql), ask(sql, BY_TASKS)

    assert (way(found), way(expected)) == ("plan", "sql")
    parts = ("columns", "rows", "release", "stalled", "truncated")
    assert {part: found.json()[part] for part in parts} == {part: expected.json()[part] for part in parts}
    assert rows(found)


def test_what_has_a_time_or_a_chance_in_it_is_computed_each_time(ask: Asking) -> None:
    for what in (
        "current_timestamp()", "now()", "localtimestamp()", "cast('now' AS timestamp)", "TIMESTAMP 'now'",
        "TIMESTAMP '\\u006eow'", "to_timestamp('now')", "unix_micros(current_timestamp())",
        "cast(concat('no', 'w') AS timestamp)", "rand()", "uuid()", "shuffle(sequence(1, 20))",
    ):  # fmt: skip
        sql = f"SELECT {what} AS x FROM serve.sales_per_region LIMIT 1"
        found = [repr(rows(ask(sql))) for _ in range(4)]
        assert len({*found}) == len(found), what


def test_a_sample_is_drawn_each_time(ask: Asking) -> None:
    sql = "SELECT customer FROM serve.latest_order TABLESAMPLE (50 PERCENT)"

    assert {way(ask(sql)) for _ in range(4)} == {"sql"}


def test_an_error_is_that_of_any_statement(ask: Asking) -> None:
    sql = "SELECT sum(orders / (orders - orders)) AS n FROM serve.sales_per_region"

    for _ in range(3):
        found = ask(sql)
        assert found.status_code == 400 and "DIVIDE_BY_ZERO" in found.json()["why"]
    unknown = ask("SELECT * FROM serve.sales_per_regio").json()
    assert "did you mean serve.sales_per_region" in unknown["remedy"]


def test_the_limit_is_that_of_each_request(ask: Asking) -> None:
    sql = "SELECT customer FROM serve.latest_order ORDER BY customer"
    whole = rows(kept(ask, sql))

    for limit in (1, 2, 1):
        found = ask(sql, limit=limit)
        assert (rows(found), found.json()["truncated"]) == (whole[:limit], len(whole) > limit)
    assert rows(ask(sql)) == whole


def test_a_moment_is_read_as_it_was_and_after_it_the_plan_is_that_of_now(ask: Asking, history: Fed) -> None:
    kept(ask, COUNT)
    history.more()
    now = rows(ask(COUNT))

    past = ask(COUNT, as_of="position:orders=1")

    assert way(past) == "sql" and rows(past) != now
    again = ask(COUNT)
    assert (way(again), rows(again)) == ("plan", now)


def test_a_setting_of_a_session_is_of_that_session_alone(
    server: SqlServer, ask: Asking, analyst_jvm: Any
) -> None:
    sql = "SELECT cast(max(ordered_at) AS string) AS at FROM serve.latest_order"
    utc = rows(kept(ask, sql))[0]["at"]
    connection = connected(server, analyst_jvm)()
    try:
        over_jdbc(connection, "SET spark.sql.session.timeZone = Asia/Tokyo")
        tokyo = over_jdbc(connection, sql)
        assert tokyo[0][0] != utc
        rows(ask("SET spark.sql.session.timeZone = Asia/Tokyo"))
        assert rows(ask(sql)) == [{"at": utc}]
        assert over_jdbc(connection, sql) == tokyo
    finally:
        connection.close()


def test_what_is_read_beside_views_is_that_of_now(ask: Asking, history: Fed) -> None:
    sql = "SELECT count(DISTINCT table_schema) AS n FROM information_schema.tables"
    before = [rows(ask(sql)) for _ in range(3)][-1][0]["n"]
    history.release(2, "2026-01-31T12:00:40Z")

    until = time.monotonic() + 30
    while (now := rows(ask(sql))[0]["n"]) == before and time.monotonic() < until:
        time.sleep(0.2)
    assert now == before + 1


def test_nobody_goes_a_step_back_while_the_lake_is_fed(ask: Asking, history: Fed) -> None:
    kept(ask, COUNT)
    ended = threading.Event()

    def watch(number: int) -> list[int]:
        seen, user = list[int](), ("analyst", BY_TASKS)[number % 2]
        while not ended.is_set():
            seen.append(rows(ask(COUNT, user))[0]["n"])
        return seen

    with ThreadPoolExecutor(4) as clients:
        watching = [clients.submit(watch, number) for number in range(4)]
        for _ in range(5):
            history.more()
        time.sleep(0.5)
        ended.set()
        found = [one.result() for one in watching]

    assert all(seen == sorted(seen) and seen for seen in found)
    assert max(map(max, found)) > min(map(min, found))


def test_a_new_release_is_seen_at_once_and_never_mixed(ask: Asking, server: SqlServer, history: Fed) -> None:
    """The new version counts paid orders alone."""
    both = "SELECT (SELECT sum(orders) FROM serve.sales_per_region) AS n"
    sql = "SELECT sum(orders) AS n, count_if(orders IS NULL) AS nothing FROM serve.sales_per_region"
    all_of_them = rows(kept(ask, sql))
    rows(ask(both))
    paid = replace(SALES, where="status = 'paid'")
    version = replace(version_of(paid, 2), topics=("orders",))
    version.save(history.lake)
    history._advanced(version, random.Random(1))
    history.versions["sales_per_region"] = version
    number = ask(sql).json()["release"] + 1
    seen = list[tuple[int, Any]]()
    history.release(number, "2026-01-31T12:00:50Z")

    until = time.monotonic() + 60
    while (not seen or seen[-1][0] < number) and time.monotonic() < until:
        found = ask(sql)
        seen.append((found.json()["release"], rows(found)))

    of_releases = {release: [one for at, one in seen if at == release] for release, _ in seen}
    assert all(one == all_of_them for one in of_releases.get(number - 1, []))
    (now,) = of_releases[number]
    assert 0 < now[0]["n"] < all_of_them[0]["n"]
    assert rows(ask(sql, BY_TASKS)) == now and rows(kept(ask, sql)) == now


def test_a_right_that_is_lost_is_lost_for_a_plan_that_is_kept(ask: Asking, server: SqlServer) -> None:
    sql = "SELECT customer, status FROM serve.latest_order ORDER BY customer"
    file = server.scratch / "password"
    with file.open("a") as lines:
        lines.write(f"{hashed('rita', PASSWORD).strip()}:analyst\n")
    whole = rows(kept(ask, sql, "rita"))
    kept(ask, sql)

    users.set_rights(file, "rita", Rights(rows={"latest_order": "customer = 'c1'"}))
    assert rows(ask(sql, "rita")) == [row for row in whole if row["customer"] == "c1"]
    users.set_rights(file, "rita", Rights(masks={"latest_order.status": "null"}))
    assert {row["status"] for row in rows(ask(sql, "rita"))} == {None}
    users.set_rights(file, "rita", Rights(hidden=("latest_order.status",)))
    assert ask(sql, "rita").status_code == 400
    users.set_rights(file, "rita", Rights(tables=("sales_per_region",)))
    assert "may read" in ask(sql, "rita").text
    found = ask(sql)
    assert (way(found), rows(found)) == ("plan", whole), "others have lost nothing"
    users.set_rights(file, "rita", Rights())
    assert rows(ask(sql, "rita")) == whole


def test_who_is_revoked_is_out_with_the_next_statement_on_the_same_connection(
    ask: Asking, server: SqlServer
) -> None:
    file = server.scratch / "password"
    with file.open("a") as lines:
        lines.write(f"{hashed('rosa', PASSWORD).strip()}:analyst\n")
    kept(ask, COUNT, "rosa")

    second = users.new_password(file, "rosa")
    assert ask(COUNT, "rosa").status_code == 401
    assert ask(COUNT, "rosa", second).is_success
    users.remove(file, "rosa")
    assert ask(COUNT, "rosa", second).status_code == 401
    assert way(ask(COUNT)) == "plan"


def test_a_row_is_final_as_soon_as_the_watermark_says_so(ask: Asking, history: Fed) -> None:
    sql = "SELECT count_if(final) AS n FROM serve.sales_per_region"
    before = rows(kept(ask, sql))[0]["n"]

    history.more(later=timedelta(days=1))

    until = time.monotonic() + 30
    while (now := rows(found := ask(sql))[0]["n"]) <= before and time.monotonic() < until:
        time.sleep(0.2)
    assert now > before and way(found) == "plan"
