"""Whoever follows a table is told what their rights show, and when those change: on a SQL server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from tests.reading.conftest import PASSWORD, SqlServer, started
from tests.reading.follows import Follows, Refused, following
from tests.reading.staged import LATEST, SALES, Stage, shown
from twinlake.base.passwords import hashed
from twinlake.config import users
from twinlake.config.rights import Rights
from twinlake.lake.catalog import described
from twinlake.reading.changes import route

CLASSES: dict[str, dict[str, list[str]]] = {LATEST: {"customer": [], "status": []}}


@pytest.fixture(scope="module")
def stage(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    made = Stage(spark, tmp_path_factory.mktemp("changes") / "lake")
    described.publish_classes(made.lake, CLASSES)
    return made


@pytest.fixture(scope="module")
def server(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    made = SqlServer(home=stage.lake.parent, scratch=tmp_path_factory.mktemp("scratch"))
    with started(made):
        yield made


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


LIMITED = {"rows": {LATEST: "status = 'paid'"}, "hidden": (f"{LATEST}.order_id",)}


@pytest.mark.parametrize(("before", "now"), [(LIMITED, {}), ({}, LIMITED)], ids=["more", "less"])
def test_a_position_of_other_rights_gives_the_whole(
    stage: Stage, server: SqlServer, before: dict[str, Any], now: dict[str, Any]
) -> None:
    stage.append(3, status="'pending'")
    allowed(server, "vera", **before)
    with following(server.url, LATEST, user="vera") as reader:
        reader.until(lambda one: one.at)
    assert reader.table == shown(server, LATEST, "vera")
    allowed(server, "vera", **now)

    held = Follows(table=dict(reader.table))
    with following(server.url, LATEST, last=reader.at, user="vera", held=held) as again:
        again.until(lambda one: one.at)

    assert again.wholes == [route.CHANGED]
    assert again.table == shown(server, LATEST, "vera") != reader.table


def test_a_position_of_somebody_else_is_good_for_who_sees_the_same_alone(
    stage: Stage, server: SqlServer
) -> None:
    allowed(server, "anna", **LIMITED)
    allowed(server, "emil", **LIMITED)
    with following(server.url, LATEST, user="anna") as anna:
        anna.until(lambda one: one.at)

    held = Follows(table=dict(anna.table))
    with following(server.url, LATEST, anna.at, user="emil", held=held) as emil:
        emil.until(lambda one: one.at)
    with following(server.url, LATEST, anna.at, held=Follows(table=dict(anna.table))) as analyst:
        analyst.until(lambda one: one.at)

    assert (emil.wholes, analyst.wholes) == ([], [route.CHANGED])
    assert emil.table == shown(server, LATEST, "emil") and analyst.table == shown(server, LATEST)


def test_a_position_of_who_sees_less_stays_good_over_classifications_of_others_and_a_restart(
    stage: Stage, server: SqlServer
) -> None:
    """What is published anew says the same of this table; what says something else of it gives the whole."""
    allowed(server, "carl", masks={"personal": "null"})
    with following(server.url, LATEST, user="carl") as reader:
        reader.until(lambda one: one.at)
    described.publish_classes(stage.lake, {**CLASSES, SALES: {"region": ["personal"]}})
    known = server.scratch / "password"
    users_of_before = known.read_text()
    server.kill()
    server.start()
    known.write_text(users_of_before)
    httpx.get(f"{server.url}/names", timeout=60, trust_env=False, auth=("carl", PASSWORD))
    held = Follows(table=dict(reader.table))
    with following(server.url, LATEST, reader.at, user="carl", held=held) as again:
        again.until(lambda one: one.at)
        described.publish_classes(stage.lake, {LATEST: {**CLASSES[LATEST], "status": ["personal"]}})
        again.until(lambda one: one.ended)
    assert again.wholes == []

    with following(server.url, LATEST, again.at, user="carl", held=again) as last:
        last.until(lambda one: one.wholes)
        last.until(lambda one: len(one.changes) > 1)
    assert last.table == shown(server, LATEST, "carl")
    assert {row["status"] for row in last.table.values()} == {None}
