"""A record without a value is a mistake, nothing, or the delete of its key: the contract says which."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.ingest.fed import Fed, shown
from tests.ingest.stage import Stage, order
from twinlake.kinds.events import Events
from twinlake.kinds.latest import Latest
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.log.quarantine import quarantine_sql

pytestmark = pytest.mark.usefixtures("way")


def contracted(stage: Stage, keys: tuple[str, ...] = ("customer",), **changes: Any) -> None:
    """The stage's topic with another contract."""
    contract = stage.topic.contract
    columns = tuple(replace(column, key=column.name in keys) for column in contract.columns)
    stage.topic = replace(stage.topic, contract=replace(contract, columns=columns, **changes))


def latest(stage: Stage) -> Latest:
    return Latest(
        name="latest",
        inputs=(stage.topic.name,),
        columns={"customer": "customer", "order_id": "order_id", "gone": "_tombstone"},
        keys=("customer",),
        values=("order_id",),
        delete_when="gone",
    )


def test_an_ignored_null_is_kept_and_is_neither_a_row_nor_in_quarantine(stage: Stage) -> None:
    stage.create(partitions=1)
    contracted(stage, null_values="ignore")
    stage.produce(stage.framed(order("a")), None, b"junk")
    stage.produce(None, key=None)

    log = stage.run()

    assert [row[3:] for row in stage.verdicts(log)] == [
        ("valid", ()), ("ignored", ("null_value",)), ("invalid", ("bad_header",)),
        ("ignored", ("null_value",)),
    ]  # fmt: skip
    assert log.rows(0, 9).count() == 1
    refused = stage.spark.sql(quarantine_sql(relation_sql(log.path))).collect()
    assert [row.offset for row in refused] == [2]
    assert log.metadata()["counts"] == {
        "valid": 1, "invalid": 1, "duplicate": 0, "too_late": 0, "late": 0, "ignored": 2,
    }  # fmt: skip


def test_a_delete_hides_its_key_in_both_layers_and_what_comes_after_shows_it_again(stage: Stage) -> None:
    stage.create(partitions=1)
    contracted(stage, null_values="delete", key_format="string")
    fed = Fed(stage, latest(stage))
    for customer in ("anna", "ben", "cleo"):
        stage.produce(stage.framed(order(customer, customer=customer)), key=customer.encode())
    stage.produce(None, key=b"anna")
    stage.produce(None, key=b"nobody")
    log = fed.run()
    watermark = log.metadata()["watermark"]
    first = fed.shows()
    stage.produce(None, key=b"ben")
    stage.produce(stage.framed(order("again", customer="anna", order_id=7)), key=b"anna")

    log = fed.run()

    assert first == {("ben", 1), ("cleo", 1)}
    assert fed.shows() == {("anna", 7), ("cleo", 1)}
    assert {row[3] for row in stage.verdicts(log)} == {"valid"}
    newest = max(row.ordered_at for row in log.rows(0, 9).collect() if row.ordered_at)
    assert watermark <= newest.timestamp() * 1e6  # the time of a delete is not the events'


def test_a_delete_has_no_values_but_its_key_and_breaks_no_rule(stage: Stage) -> None:
    stage.create(partitions=1)
    contracted(stage, null_values="delete", key_format="string")
    stage.produce(stage.framed(order("a")), None, None)
    stage.produce(None, key=None)
    stage.produce(None, key=b"\xff")

    log = stage.run()

    assert [row[3:] for row in stage.verdicts(log)] == [
        ("valid", ()), ("valid", ()), ("valid", ()), ("invalid", ("null_value",)), ("invalid", ("bad_key",)),
    ]  # fmt: skip
    columns = ("event_id", "customer", "ordered_at", "_key", "_tombstone")
    rows = log.rows(0, 9).where("_offset = 1").select(*columns).collect()
    assert [tuple(row) for row in rows] == [(None, "anna", None, "anna", True)]
    assert log.rows(0, 9).select("_tombstone").where("NOT _tombstone").count() == 1


def test_a_key_is_shown_to_definitions_where_the_contract_says_how_it_is_written(stage: Stage) -> None:
    stage.create(partitions=1)
    name = stage.topic.name
    contracted(stage, keys=("customer", "order_id"), key_format="json")
    good = b'{"order_id": 7, "customer": "anna", "more": [1]}'
    stage.produce(stage.framed(order("a")), key=good)
    stage.produce(stage.framed(order("b")), key=None)
    for number, key in enumerate((
        b"", b"anna", b'{"order_id": "7"}', good + b"x", good + b"]", b"[" + good + b"]", b"null", b"\xff",
    )):  # fmt: skip
        stage.produce(stage.framed(order(f"bad-{number}")), key=key)

    log = stage.run()

    keyed = Events(
        name="keyed", inputs=(name,), columns={"event": "event_id", "number": "_key.order_id", "key": "_key"}
    )
    assert [row[:3] for row in shown(stage, log, keyed)] == [("a", 7, (7, "anna")), ("b", None, None)]
    assert [row[4] for row in stage.verdicts(log)[2:]] == [("bad_key",)] * 8
