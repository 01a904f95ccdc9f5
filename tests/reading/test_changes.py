"""Whoever follows a table has what it shows, at every position: on a SQL server of its own process."""

from __future__ import annotations

import base64
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.history import LATEST as LATEST_ORDER
from tests.history import SALES as SALES_PER_REGION
from tests.history import version_of
from tests.project import OURS, PROJECT
from tests.reading.conftest import PASSWORD, SqlServer, started
from tests.reading.follows import Follows, Refused, following
from tests.written_log import write_batch
from twinlake.base.passwords import hashed
from twinlake.base.waiting import wait_for
from twinlake.config import users
from twinlake.config.rights import Rights
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind, is_stored
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.maintained_version import MaintainedVersion, open_version
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.lake.log.log import Log
from twinlake.reading.changes import page
from twinlake.reading.changes.position import parse
from twinlake.reading.changes.readers import OF_ONE_USER
from twinlake.speed.advance import Standing, advance
from twinlake.topics.topic import load_topic

SALES, LATEST, PAID, CUSTOMERS = "sales_per_region", "latest_order", "paid", "customers_per_region"
TABLES: dict[str, Kind] = {
    SALES: SALES_PER_REGION,
    LATEST: replace(LATEST_ORDER, delete_when="status = 'cancelled'"),
    PAID: Events(
        name=PAID, inputs=("orders",), columns={"customer": "customer", "amount": "amount"},
        where="status = 'paid'",
    ),
    CUSTOMERS: Derived(
        name=CUSTOMERS, reads=(LATEST,), columns=("status", "customers"), keys=("status",), by=("status",),
        sql=f"SELECT status, count(*) AS customers FROM {LATEST} GROUP BY status",
    ),
}  # fmt: skip
CHANGED = {**TABLES, SALES: replace(SALES_PER_REGION, where="region <> 'south'")}


class Stage:
    """A lake that goes on while readers follow it."""

    def __init__(self, spark: SparkSession, lake: Path) -> None:
        self.spark, self.lake = spark, lake
        formats.acquire(lake)
        self.log = Log(spark, lake, load_topic("orders", OURS))
        self.feeds: dict[tuple[str, str], tuple[MaintainedVersion, Standing]] = {}
        self.append(20)
        self.versions = self.build(TABLES, {})
        self.promote(self.versions)

    def build(self, tables: dict[str, Kind], known: dict[str, Version]) -> dict[str, Version]:
        made = dict(known)
        for build, (name, table) in enumerate(tables.items(), start=1 + len(self.feeds)):
            version = replace(
                version_of(table), topics=("orders",), build=build,
                reads={read: made[read].name for read in table.reads},
            )  # fmt: skip
            version.save(self.lake)
            made[name] = version
            if is_stored(table):
                feed = open_version(self.lake, version, {"orders": self.log})
                assert isinstance(feed, MaintainedVersion)
                self.feeds[name, version.name] = feed, advance(feed, Standing(), self.log.end())
        return made

    def promote(self, versions: dict[str, Version], kind: Any = "promote") -> int:
        before = release_log.live(self.lake)
        number = before.number + 1 if before else 1
        tables = {name: version.name for name, version in versions.items()}
        release_log.commit(self.lake, Release(
            number=number, kind=kind, created_at="2026-01-31T12:00:30Z", approved_by="me", tables=tables,
        ))  # fmt: skip
        return number

    def append(self, records: int, **fields: str) -> int:
        write_batch(self.log, records, **fields)
        for key, (feed, at) in self.feeds.items():
            self.feeds[key] = feed, advance(feed, at, self.log.end())
        return self.log.end()


@pytest.fixture(scope="module")
def stage(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(spark, tmp_path_factory.mktemp("changes") / "lake")


@pytest.fixture(scope="module")
def server(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    made = SqlServer(home=stage.lake.parent, scratch=tmp_path_factory.mktemp("scratch"))
    with started(made):
        yield made


def shown(server: SqlServer, table: str, user: str = "analyst") -> dict[tuple[Any, ...], dict[str, Any]]:
    """What the table's view shows now, without what follows the watermark."""
    answer = httpx.post(
        f"{server.url}/query", json={"sql": f"SELECT * FROM {table}"}, timeout=120, trust_env=False,
        headers={"X-Twinlake-Query": "1"}, auth=(user, PASSWORD),
    )  # fmt: skip
    assert answer.is_success, answer.text
    rows = [{name: value for name, value in row.items() if name != "final"} for row in answer.json()["rows"]]
    keys = {SALES: ("region", "window_start"), LATEST: ("customer",), CUSTOMERS: ("status",)}.get(
        table, ("_epoch", "_partition", "_offset")
    )
    return {tuple(row[key] for key in keys): row for row in rows}


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

    assert refused.value.status == 400 and "of table latest_order" in refused.value.error["why"]


def test_a_position_of_a_lake_that_was_restored_gives_the_whole(stage: Stage, server: SqlServer) -> None:
    """It was at this batch with other records: the clocks of its commits were other ones."""
    with following(server.url, LATEST, "now") as reader:
        reader.until(lambda one: one.at)
    other = replace(parse(LATEST, reader.at), identity="0" * 12).text

    with following(server.url, LATEST, other) as late:
        late.until(lambda one: one.at)

    assert len(late.wholes) == 1 and late.table == shown(server, LATEST)


def allowed(server: SqlServer, name: str, **rights: Any) -> None:
    """Somebody with these rights, from the next request on."""
    file = server.scratch / "password"
    if name not in users.load(file):
        with file.open("a") as lines:
            lines.write(f"{hashed(name, PASSWORD).strip()}:analyst\n")
    users.set_rights(file, name, Rights(**rights))
    httpx.get(f"{server.url}/names", timeout=60, trust_env=False, auth=(name, PASSWORD))


def test_what_somebody_may_not_see_is_not_told(stage: Stage, server: SqlServer) -> None:
    """Of rows and columns, masked and hidden: at every position what their own query shows."""
    allowed(
        server, "rita", tables=(f"serve.{LATEST}", f"serve.{SALES}"), hidden=(f"{LATEST}.order_id",),
        masks={f"{LATEST}.customer": "hash"}, rows={LATEST: "status = 'paid'"},
    )  # fmt: skip
    with following(server.url, LATEST, user="rita") as reader:
        reader.until(lambda one: one.at)
        assert reader.table == shown(server, LATEST, "rita")
        for status in ("pending", "paid", "cancelled", "paid"):  # rows go out of sight, and come into it
            reader.until_at(stage.append(3, status=f"'{status}'"))
            assert reader.table == shown(server, LATEST, "rita")

    assert any(one["deletes"] for one in reader.changes) and reader.wholes == ["it is the beginning"]
    assert {len(key[0]) for key in reader.table} == {64}
    assert not any("order_id" in row for row in reader.table.values())


@pytest.mark.parametrize(
    "rights", [{"masks": {f"{LATEST}.customer": "last4"}}, {"hidden": (f"{LATEST}.customer",)}]
)
def test_who_cannot_tell_rows_apart_is_refused(server: SqlServer, rights: dict[str, Any]) -> None:
    allowed(server, "blind", **rights)

    with pytest.raises(Refused) as refused, following(server.url, LATEST, user="blind"):
        pass

    assert refused.value.status == 400 and "cannot be followed by blind" in refused.value.error["what"]


def test_a_table_that_is_not_theirs_is_not_there(server: SqlServer) -> None:
    allowed(server, "nora", tables=(f"serve.{SALES}",))

    with pytest.raises(Refused) as refused, following(server.url, LATEST, user="nora"):
        pass

    assert refused.value.status == 404 and "there is no table 'latest_order'" in refused.value.error["what"]


@pytest.mark.parametrize("rights", [{"tables": ("serve.none",)}, {"rows": {LATEST: "status = 'paid'"}}])
def test_who_loses_a_right_is_told_so_and_gets_no_more(
    stage: Stage, server: SqlServer, rights: dict[str, Any]
) -> None:
    allowed(server, "lena")
    with following(server.url, LATEST, user="lena") as reader:
        reader.until(lambda one: one.at)
        had = len(reader.changes)
        allowed(server, "lena", **rights)
        reader.until(lambda one: one.ended)
        stage.append(2)

    assert len(reader.changes) == had and "lena" in reader.ended["why"]  # type: ignore[index]


def test_without_the_login_nobody_follows_and_no_page_of_another_site(server: SqlServer) -> None:
    url = f"{server.url}/tables/{LATEST}/changes"
    known = {"auth": ("analyst", PASSWORD), "timeout": 60, "trust_env": False}

    assert httpx.get(url, timeout=60, trust_env=False).status_code == 401
    assert httpx.get(url, auth=("analyst", "wrong"), timeout=60, trust_env=False).status_code == 401
    foreign: Any = httpx.get(url, headers={"Sec-Fetch-Site": "cross-site"}, **known)  # type: ignore[arg-type]
    assert foreign.status_code == 400 and "another site" in foreign.json()["why"]
    other: Any = httpx.get(url, params={"since": "now"}, **known)  # type: ignore[arg-type]
    assert other.status_code == 400 and "`from` alone" in other.json()["remedy"]


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
