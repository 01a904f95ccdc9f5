"""Every topic has its views from its first batch on: before any table, in every release, at every moment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

import twinlake
from jobs.tables import orders
from tests.history import version_of
from tests.ingest.fed import contract_of
from tests.project import OURS
from tests.reading.conftest import PASSWORD, SqlServer, connected
from tests.written_log import write_batch
from twinlake.cli.quarantine import quarantined
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.log.log import Log
from twinlake.topics.topic import json_topic, load_topic

pytestmark = pytest.mark.faults

NEW = "shop.events-2"
"""A topic that no table reads, named as no view can be."""
OF_ORDERS = {"orders_valid", "orders_quarantine", "orders_replayed"}
OF_NEW = {"shop_events_2_valid", "shop_events_2_quarantine", "shop_events_2_replayed"}
BODY = '{"at": "2026-01-31T12:00:00Z", "event_id": "é", "more": {"not": "named"}}'
PROPERTIES = [
    {"name": "at", "logicalType": "timestamp", "physicalType": "timestamp", "required": True},
    {"name": "event_id", "logicalType": "string", "physicalType": "string"},
]


@dataclass(frozen=True, kw_only=True)
class Onboarding:
    server: SqlServer
    spark: SparkSession

    @property
    def lake(self) -> Any:
        return self.server.home / "lake"

    def ask(self, sql: str, as_of: str | None = None) -> httpx.Response:
        return httpx.post(
            f"{self.server.url}/query", json={"sql": sql, "as_of": as_of}, timeout=120, trust_env=False,
            headers={"X-Twinlake-Query": "1"}, auth=("analyst", PASSWORD),
        )  # fmt: skip

    def rows(self, sql: str, as_of: str | None = None) -> list[dict[str, Any]]:
        answer = self.ask(sql, as_of)
        assert answer.is_success, answer.text
        found: list[dict[str, Any]] = answer.json()["rows"]
        return found

    def names(self, schema: str = "serve") -> set[str]:
        return {row["viewName"] for row in self.rows(f"SHOW VIEWS IN {schema}")}

    def count(self, view: str, as_of: str | None = None) -> int:
        ((found,),) = (row.values() for row in self.rows(f"SELECT count(*) FROM serve.{view}", as_of))
        return int(found)

    def write(self, records: int = 4, value: str = f"'{BODY}'") -> None:
        """A batch of the new topic; its record 1 is not UTF-8, its record 2 lacks a field."""
        contract = contract_of(NEW, PROPERTIES, format="json", keyFormat="string")
        write_batch(
            Log(self.spark, self.lake, json_topic(NEW, contract)), records,
            at="timestamp_seconds(1769860800)", event_id="concat('e', id)",
            beside={
                "key": "encode(concat('c', id), 'UTF-8')", "schema_id": "NULL",
                "value": f"if(id = 1, X'00FF', encode({value}, 'UTF-8'))",
                "verdict": "if(id IN (1, 2), 'invalid', 'valid')",
                "reasons": "CASE id WHEN 1 THEN array('malformed_body') WHEN 2 THEN array('missing:at') "
                "ELSE cast(array() as array<string>) END",
            },
        )  # fmt: skip

    def release(self, **tables: str) -> int:
        """Its number, once it is followed."""
        live = release_log.live(self.lake)
        number = live.number + 1 if live else 1
        release_log.commit(self.lake, Release(
            number=number, kind="promote", created_at=f"2026-01-31T12:0{number}:30Z",
            approved_by="me", tables=tables,
        ))  # fmt: skip
        self.server.wait_until(lambda status: status["release"] == number)
        return number


@pytest.fixture(scope="module")
def onboarding(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Onboarding]:
    home = tmp_path_factory.mktemp("onboarding")
    made = Onboarding(server=SqlServer(home=home, scratch=tmp_path_factory.mktemp("scratch")), spark=spark)
    formats.acquire(made.lake)
    write_batch(Log(spark, made.lake, load_topic("orders", OURS)), 5)
    try:
        made.server.start()
        made.server.wait_until(lambda status: status["ready"])
        made.server.services.save(home / "services.json")
        yield made
    finally:
        made.server.kill()


def test_before_the_first_release_a_topic_is_read_from_its_first_batch_on(
    onboarding: Onboarding, analyst_jvm: Any
) -> None:
    assert onboarding.names() == OF_ORDERS
    unknown = onboarding.ask("SELECT * FROM serve.shop_events_2_valid").json()
    assert "Nothing has been released yet: only topics have views" in unknown["why"]

    onboarding.write()

    onboarding.server.wait_until(lambda _: onboarding.names() == OF_ORDERS | OF_NEW)
    assert onboarding.count("orders_valid") == 5
    with closing(connected(onboarding.server, analyst_jvm)()) as connection:
        rows = connection.createStatement().executeQuery("SELECT * FROM serve.shop_events_2_quarantine")
        assert rows.next() and rows.next() and not rows.next()
    assert twinlake.read("orders_valid", home=onboarding.server.home).num_rows == 5


def test_json_is_shown_as_text_and_what_is_no_text_by_its_bytes(onboarding: Onboarding) -> None:
    valid = onboarding.rows("SELECT * FROM serve.shop_events_2_valid ORDER BY _offset")
    refused = onboarding.rows("SELECT * FROM serve.shop_events_2_quarantine ORDER BY offset")

    assert [*valid[0]] == [
        "at", "event_id", "_key", "_epoch", "_partition", "_offset", "_timestamp", "_ingested_at", "_value"
    ]  # fmt: skip
    assert [(row["event_id"], row["_key"], row["_value"]) for row in valid] == [
        ("e0", "c0", BODY), ("e3", "c3", BODY)
    ]  # fmt: skip
    assert json.loads(valid[0]["_value"])["more"] == {"not": "named"}
    assert [(row["key"], row["value"], row["reasons"]) for row in refused] == [
        ("c1", "0x00FF", ["malformed_body"]), ("c2", BODY, ["missing:at"])
    ]  # fmt: skip
    samples = quarantined(onboarding.server.services, NEW, ["missing:at"], 3)["groups"][0]["samples"]
    assert [sample["value"] for sample in samples] == [BODY]


def test_every_release_has_the_views_of_all_topics_and_keeps_them_without_a_table_that_reads_them(
    onboarding: Onboarding,
) -> None:
    version = version_of(orders.TABLE)
    version.save(onboarding.lake)
    onboarding.release(orders=version.name)
    onboarding.release()  # drops the only table

    both = OF_ORDERS | OF_NEW
    onboarding.server.wait_until(lambda _: onboarding.names("release_2") == both)
    assert onboarding.names() == both
    assert onboarding.names("release_1") == both | {"orders"}
    assert onboarding.count("orders_valid") == 5


def test_as_of_a_moment_they_have_the_batches_up_to_it(onboarding: Onboarding) -> None:
    onboarding.write()

    views = "shop_events_2_valid", "shop_events_2_quarantine"
    onboarding.server.wait_until(lambda _: onboarding.count(views[0]) == 4)
    assert [onboarding.count(view) for view in views] == [4, 4]
    for moment in (f"position:{NEW}=1", "2026-01-31T12:01:40Z", "release:1"):  # of then, release 2 followed
        found = [onboarding.count(view, moment) for view in views]
        assert found == ([2, 2] if moment != "release:1" else [4, 4]), moment


def test_a_damaged_log_is_named_by_its_views_and_the_others_go_on(onboarding: Onboarding) -> None:
    file = onboarding.lake / "topics" / f"{NEW}.json"
    whole = file.read_text()
    file.write_text(whole[:50])

    onboarding.server.wait_until(lambda _: onboarding.ask("SELECT * FROM serve.shop_events_2_valid").is_error)
    for view in OF_NEW:
        error = onboarding.ask(f"SELECT * FROM serve.{view}").json()
        assert (error["error"], error["file"]) == ("DamagedError", str(file))
    assert onboarding.count("orders_valid") == 5

    file.write_text(whole)
    onboarding.server.wait_until(
        lambda _: onboarding.ask("SELECT * FROM serve.shop_events_2_valid").is_success
    )


def test_a_table_of_a_release_of_before_keeps_the_name_that_it_has_taken(onboarding: Onboarding) -> None:
    version = version_of(replace(orders.TABLE, name="Orders_VALID"))
    version.save(onboarding.lake)
    number = onboarding.release(**{version.table: version.name})

    assert "_ingested_at" not in onboarding.rows("SELECT * FROM serve.orders_valid")[0]
    assert "_ingested_at" not in onboarding.rows("SELECT * FROM serve.orders_valid", f"release:{number}")[0]
    assert onboarding.names() == OF_ORDERS | OF_NEW
