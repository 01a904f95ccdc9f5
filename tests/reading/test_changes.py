"""Whoever follows a table has what it shows, at every position: on a SQL server of its own process."""

from __future__ import annotations

import base64
import shutil
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.project import PROJECT
from tests.reading.conftest import PASSWORD, SqlServer, started
from tests.reading.follows import Follows, Refused, following
from tests.reading.staged import CHANGED, CUSTOMERS, LATEST, PAID, SALES, Stage, shown
from twinlake.base.waiting import wait_for
from twinlake.kinds.events import Events
from twinlake.reading.changes import page
from twinlake.reading.changes.position import parse
from twinlake.reading.changes.readers import OF_ONE_USER


@pytest.fixture(scope="module")
def stage(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(spark, tmp_path_factory.mktemp("changes") / "lake")


@pytest.fixture(scope="module")
def server(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    made = SqlServer(home=stage.lake.parent, scratch=tmp_path_factory.mktemp("scratch"))
    with started(made):
        yield made


@pytest.mark.parametrize("table", [SALES, LATEST, PAID])
def test_a_reader_has_what_the_table_shows_and_gets_what_changes(
    stage: Stage, server: SqlServer, table: str
) -> None:
    with following(server.url, table) as reader:
        reader.until(lambda one: one.at)
        assert reader.table == shown(server, table)
        for records, status in ((3, "paid"), (2, "cancelled"), (1, "pending")):
            batch = stage.append(records, status=f"'{status}'")
            reader.until_at(batch)
            assert reader.table == shown(server, table)

    assert reader.wholes == ["it is the beginning"]
    assert all(one["upserts"] + one["deletes"] <= 5 for one in reader.changes[1:])
    if table == LATEST:
        assert any(one["deletes"] for one in reader.changes)


def test_a_table_over_tables_is_followed(stage: Stage, server: SqlServer) -> None:
    with following(server.url, CUSTOMERS) as reader:
        reader.until(lambda one: one.at)
        batch = stage.append(4, status="'pending'")
        reader.until_at(batch)

        assert reader.table == shown(server, CUSTOMERS)


def test_from_every_position_a_reader_misses_nothing_and_gets_nothing_twice(
    stage: Stage, server: SqlServer
) -> None:
    with following(server.url, LATEST) as whole:
        whole.until(lambda one: one.at)
        for status in ("paid", "cancelled", "paid", "pending"):
            whole.until_at(stage.append(3, status=f"'{status}'"))

    for position, state in whole.states.items():
        for given in ({"since": position}, {"last": position, "since": "beginning"}):
            held = Follows(table=dict(state))
            with following(server.url, LATEST, held=held, **given) as reader:
                reader.until(lambda one: one.at == whole.at)
            assert (reader.table, reader.wholes) == (whole.table, [])
            touched = {key for key in {*state, *whole.table} if state.get(key) != whole.table.get(key)}
            assert sum(one["upserts"] + one["deletes"] for one in reader.changes) == len(touched)


def test_from_now_only_what_comes_is_told(stage: Stage, server: SqlServer) -> None:
    with following(server.url, PAID, "now") as reader:
        reader.until(lambda one: one.at)
        assert reader.table == {}
        reader.until_at(stage.append(2))

    assert [one["upserts"] for one in reader.changes] == [0, 2]


def test_a_release_tells_what_differs_and_a_rollback_takes_it_back(stage: Stage, server: SqlServer) -> None:
    with following(server.url, SALES) as reader:
        reader.until(lambda one: one.at)
        before = reader.table
        changed = stage.build({SALES: CHANGED[SALES]}, stage.versions)
        number = stage.promote(changed)
        reader.until_at(stage.log.end(), number)
        assert reader.table == {key: row for key, row in before.items() if key[0] != "south"} == shown(
            server, SALES
        )
        between = reader.at
        number = stage.promote(stage.versions, "rollback")
        reader.until_at(stage.log.end(), number)

    assert reader.table == before and len(reader.wholes) == 1
    held = Follows(table=reader.states[between])
    with following(server.url, SALES, between, held=held) as late:
        late.until_at(stage.log.end(), number)
    assert late.table == before and late.wholes == []


HELD = """
import sys, time
from pathlib import Path
from twinlake.reading import __main__ as sql_server
from twinlake.reading.follower import Follower

def held(self, follow=Follower.follow):
    while not Path("go_on").exists():
        time.sleep(0.1)
    follow(self)

Follower.follow = held
sys.exit(sql_server.main())
"""
"""Reads what is live as soon as there is a file."""


@pytest.mark.faults
def test_a_server_that_starts_says_so(stage: Stage, tmp_path: Path) -> None:
    server = SqlServer(home=stage.lake.parent, scratch=tmp_path, program=("-c", HELD))
    with ThreadPoolExecutor(1) as threads:
        starting = threads.submit(server.start)
        try:
            wait_for("its endpoint", lambda: not server.status()["ready"], 120, unready=httpx.HTTPError)
            answers = [
                httpx.get(f"{server.url}/tables/{LATEST}/{what}", auth=("analyst", PASSWORD), trust_env=False)
                for what in ("rows?key=customer=c1", "changes")
            ]
            (tmp_path / "go_on").touch()
            starting.result()
            with following(server.url, LATEST) as reader:
                reader.until(lambda one: one.at)
        finally:
            server.kill()

    assert [(one.status_code, one.headers.get("Retry-After")) for one in answers] == [(503, "1")] * 2
    assert answers[0].json() == answers[1].json()
    assert answers[1].json()["why"] == "it has not read yet what is live"


@pytest.mark.faults
def test_a_server_that_was_killed_gives_what_came_meanwhile(stage: Stage, server: SqlServer) -> None:
    with following(server.url, LATEST) as reader:
        reader.until(lambda one: one.at)
        server.kill()
    for status in ("cancelled", "pending"):
        batch = stage.append(3, status=f"'{status}'")
    server.start()

    held = Follows(table=dict(reader.table))
    with following(server.url, LATEST, last=reader.at, held=held) as again:
        again.until_at(batch)

    assert again.table == shown(server, LATEST) and again.wholes == []


def test_one_who_is_too_far_behind_gets_the_whole(stage: Stage, server: SqlServer) -> None:
    with following(server.url, LATEST) as reader:
        reader.until(lambda one: one.at)
    batch = stage.append(3, status="'cancelled'")
    feed, _ = stage.feeds[LATEST, stage.versions[LATEST].name]
    DeltaTable(str(feed.path)).create_checkpoint()
    away = stage.lake.parent / "away"
    away.mkdir(exist_ok=True)
    version = int(reader.at.split(".")[3])
    gone = [feed.path / "_delta_log" / f"{number:020d}.json" for number in range(version + 1)]
    for file in gone:  # as the clean-up of commits does, which are in a checkpoint
        shutil.move(file, away / file.name)
    try:
        with following(server.url, LATEST, reader.at, held=Follows(table={("x",): {}})) as late:
            late.until_at(batch)
    finally:
        for file in gone:
            shutil.move(away / file.name, file)

    assert late.wholes == ["the rows of this position are not kept any more"]
    assert late.table == shown(server, LATEST)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda at: "nonsense", "cut off, or was changed"),
        (lambda at: at[:-3], "cut off, or was changed"),
        (lambda at: at.replace(".", ".1", 1), "cut off, or was changed"),
        (lambda at: at.replace("orders=", "orders=1"), "cut off, or was changed"),
        (lambda at: "x" * 4_001, "4000"),
    ],
)
def test_a_position_that_is_none_is_refused(server: SqlServer, change: Any, says: str) -> None:
    with following(server.url, LATEST, "now") as reader:
        reader.until(lambda one: one.at)

    with (
        pytest.raises(Refused) as refused,
        following(server.url, LATEST, change(reader.at)),
    ):
        pass

    assert refused.value.status == 400 and says in str(refused.value.error)


def test_a_position_of_another_table_is_refused(server: SqlServer) -> None:
    with following(server.url, LATEST, "now") as reader:
        reader.until(lambda one: one.at)

    with pytest.raises(Refused) as refused, following(server.url, SALES, reader.at):
        pass

    assert refused.value.status == 400
    assert refused.value.error["what"].endswith("is not a position of sales_per_region")
    assert refused.value.error["why"] == "it is one of latest_order"


def test_a_position_of_a_lake_that_was_restored_gives_the_whole(stage: Stage, server: SqlServer) -> None:
    """It was at this batch with other records: the clocks of its commits were other ones."""
    with following(server.url, LATEST, "now") as reader:
        reader.until(lambda one: one.at)
    other = replace(parse(LATEST, reader.at), identity="0" * 12).text

    with following(server.url, LATEST, other) as late:
        late.until(lambda one: one.at)

    assert len(late.wholes) == 1 and late.table == shown(server, LATEST)


def test_without_the_login_nobody_follows_and_no_page_of_another_site(server: SqlServer) -> None:
    url = f"{server.url}/tables/{LATEST}/changes"
    known = {"auth": ("analyst", PASSWORD), "timeout": 60, "trust_env": False}

    assert httpx.get(url, timeout=60, trust_env=False).status_code == 401
    assert httpx.get(url, auth=("analyst", "wrong"), timeout=60, trust_env=False).status_code == 401
    foreign: Any = httpx.get(url, headers={"Sec-Fetch-Site": "cross-site"}, **known)  # type: ignore[arg-type]
    assert foreign.status_code == 400 and "another site" in foreign.json()["why"]
    other: Any = httpx.get(url, params={"since": "now"}, **known)  # type: ignore[arg-type]
    assert other.status_code == 400 and "`from` alone" in other.json()["remedy"]


def test_it_is_followed_by_get_alone(server: SqlServer) -> None:
    known: Any = {"auth": ("analyst", PASSWORD), "timeout": 60, "trust_env": False}

    posted = httpx.post(f"{server.url}/tables/{LATEST}/changes", **known)

    assert (posted.status_code, posted.headers["allow"]) == (405, "GET")
    assert posted.json()["remedy"] == "use GET"


def test_a_browser_gets_the_page_of_the_docs_that_runs_nothing_else(server: SqlServer) -> None:
    answer = httpx.get(
        f"{server.url}/tables/{LATEST}/changes", headers={"Accept": "text/html,*/*"}, timeout=60,
        auth=("analyst", PASSWORD), trust_env=False,
    )  # fmt: skip

    assert answer.text == page.FILE.read_text()
    assert answer.text in (PROJECT / "docs/changes.md").read_text()
    assert "default-src 'none'; script-src 'sha256-" in answer.headers["content-security-policy"]


def test_readers_of_one_login_are_limited_and_others_follow_all_the_same(server: SqlServer) -> None:
    with ExitStack() as many:
        for _ in range(OF_ONE_USER):
            many.enter_context(following(server.url, PAID, "now", user="ben"))
        with pytest.raises(Refused) as refused, following(server.url, PAID, "now", user="ben"):
            pass
        with following(server.url, PAID, "now", user="olga") as other:
            other.until(lambda one: one.at)

    assert refused.value.status == 503 and "20 of one login" in refused.value.error["why"]

    def free() -> bool | None:
        try:
            with following(server.url, PAID, "now", user="ben"):
                return True
        except Refused:
            return None

    wait_for("the places of those who have left", free, 30)


@pytest.mark.faults
def test_one_who_takes_nothing_costs_no_memory_and_is_cut_off_and_others_go_on(
    stage: Stage, server: SqlServer
) -> None:
    """A table of 140 MB as JSON, to a client that reads nothing: it waits in files, which are mapped."""
    wide = Events(name="wide", inputs=("orders",), columns={"text": "repeat(status, 300)"})
    stage.promote(stage.build({"wide": wide}, stage.versions))
    stage.append(40_000, status="concat('pending', id)")
    process = psutil.Process(server._process.pid)  # type: ignore[union-attr]

    def held() -> int:
        found = process.memory_info()
        return int(found.rss - found.shared)  # pages of files are given back when others need them

    with following(server.url, LATEST) as quick:
        quick.until(lambda one: one.at)
        before = held()
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            login = base64.b64encode(f"analyst:{PASSWORD}".encode()).decode()
            head = ("GET /tables/wide/changes HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Basic {login}")
            slow.sendall("\r\n".join((*head, "", "")).encode())
            most, until = 0, time.monotonic() + 25
            while time.monotonic() < until:
                most = max(most, held() - before)
                quick.until_at(stage.append(1, customer="'quick'"))

            def cut() -> bool | None:
                lines = server.listed()
                return not any(one["sql"] == "follow wide" for one in lines) or None

            wait_for("the slow reader to be cut off", cut, 60)

    assert most < 60 << 20, most
    assert quick.wholes == ["it is the beginning"]
