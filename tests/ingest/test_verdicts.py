"""What becomes of a record, told by records."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests.ingest.stage import Stage, frame, order
from twinlake.ingest.ingest import LOG_APPEND_TIME
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.log.quarantine import quarantine_sql

pytestmark = pytest.mark.usefixtures("way")

KAFKA = """key binary, value binary, topic string, partition int, offset long, timestamp timestamp,
timestampType int, headers array<struct<key string, value binary>>"""


def with_amount(good: bytes, unscaled: int) -> bytes:
    """The order with another decimal, whatever its size."""
    size = max(1, (unscaled.bit_length() + 8) // 8)
    old = bytes([4]) + (1250).to_bytes(2, "big")
    assert good.count(old) == 1
    length = size << 1
    prefix = bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
    return good.replace(old, prefix + unscaled.to_bytes(size, "big", signed=True))


def test_every_record_is_kept_with_the_verdict_and_reasons_it_deserves(stage: Stage) -> None:
    stage.create(partitions=1)
    now = datetime.now(UTC).replace(microsecond=0)

    def made(event_id: str, **changes: object) -> bytes:
        return stage.framed(order(event_id, **changes))

    good = made("a")
    malformed = ("invalid", ("malformed_body",))
    header = ("invalid", ("bad_header",))
    cases: list[tuple[bytes | None, str, tuple[str, ...]]] = [
        (good, "valid", ()),
        (good, "duplicate", ("already_seen",)),
        (None, "invalid", ("null_value",)),
        (b"", *header),
        (b"\0\0\0", *header),
        (b'{"event_id": "a"}', *header),
        (b"\0" * 40, "invalid", ("unknown_schema",)),
        (good[:1] + b"\0\0\0\x63" + good[5:], "invalid", ("unknown_schema",)),
        (good[:1] + b"\xff\xff\xff\xff" + good[5:], "invalid", ("unknown_schema",)),
        (good[:5], *malformed),
        (good[:-1], *malformed),
        (good + b"\0", *malformed),
        (good + b"12345678", *malformed),
        (good[:5] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", *malformed),
        (good[:5] + b"\x80\x80\x80\x80\x08aa", *malformed),
        (good[:5] + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", *malformed),
        (good.replace(b"anna", b"a\xff\xfea"), "invalid", ("invalid_utf8:customer",)),
        (with_amount(good, 10**12), "invalid", ("decimal_out_of_range:amount",)),
        (with_amount(good, 2**64 + 5), "invalid", ("decimal_out_of_range:amount",)),
        (with_amount(made("max"), 10**12 - 1), "valid", ()),
        (made("b", amount=Decimal("-0.01")), "invalid", ("below_minimum:amount",)),
        (
            made("c", amount=Decimal("-1"), region="", customer="", status="lost"), "invalid",
            ("below_minimum:amount", "empty:customer", "empty:region", "not_allowed:status"),
        ),
        (made("d", ordered_at=now + timedelta(minutes=20)), "invalid", ("ahead_of_kafka:ordered_at",)),
        (made("e", ordered_at=now + timedelta(minutes=4)), "valid", ()),
        (made("f", ordered_at=now - timedelta(days=22)), "too_late", ("too_late",)),
        (made("f", ordered_at=now - timedelta(hours=4)), "valid", ()),
        (made("f", ordered_at=now - timedelta(days=22)), "too_late", ("too_late",)),
        (made("b"), "valid", ()),
        (made("nul\0byte", customer="\0"), "valid", ()),
    ]  # fmt: skip
    values = [value for value, _, _ in cases]
    stage.produce(*values[:-1])
    stage.produce(values[-1], key=None)

    log = stage.run()

    expected = [(0, 0, at, verdict, tuple(sorted(reasons))) for at, (_, verdict, reasons) in enumerate(cases)]
    found = [(*row[:4], tuple(sorted(row[4]))) for row in stage.verdicts(log)]
    assert found == expected
    rows = {row.offset: row for row in log.all(0, log.end()).collect()}
    assert [rows[at].value for at in range(len(cases))] == values
    assert [row.offset for row in rows.values() if row.late] == [25]
    assert rows[len(cases) - 1].key is None
    assert rows[20].event.amount == Decimal("-0.01") and rows[16].event is None
    counts = log.metadata()["counts"]
    assert counts == {"valid": 6, "invalid": 20, "duplicate": 1, "too_late": 2, "late": 1}
    assert stage.spark.sql(quarantine_sql(relation_sql(log.path))).count() == 23
    assert log.rows(0, log.end()).count() == stage.spark.sql(log.rows_sql(log.end())).count() == 6


def test_verdicts_do_not_depend_on_how_micro_batches_are_cut(stage: Stage, tmp_path: Path) -> None:
    stage.create(partitions=2)
    for partition in (0, 1):
        ids = [f"{partition}-{n % 17}" for n in range(40)]
        stage.orders(*ids[:25], partition=partition)
        stage.produce(b"\0junk", None, partition=partition)
        stage.orders(*ids[25:], partition=partition, amount=Decimal("-1"))
        stage.orders(*ids[25:], partition=partition)

    whole = stage.run(stage.lake_of(tmp_path / "whole"))
    cut = stage.run(stage.lake_of(tmp_path / "cut"), records_per_batch=37)

    assert cut.end() > whole.end()
    assert stage.verdicts(cut) == stage.verdicts(whole)
    assert cut.metadata()["counts"] == whole.metadata()["counts"]


def test_a_duplicate_is_known_after_a_restart_and_not_after_the_horizon(stage: Stage) -> None:
    stage.create(partitions=1)
    stage.orders("a", "b")
    stage.run()
    stage.orders("a")
    stage.run()
    shorter = replace(stage.topic.contract, unique_within=timedelta(microseconds=1))
    stage.topic = replace(stage.topic, contract=shorter)
    stage.orders("b")

    log = stage.run()

    assert [row[3] for row in stage.verdicts(log)] == ["valid", "valid", "duplicate", "valid"]


def test_a_longer_horizon_is_in_force_from_the_restart_on(stage: Stage) -> None:
    contract = stage.topic.contract
    stage.create(partitions=1)
    stage.topic = replace(stage.topic, contract=replace(contract, unique_within=timedelta(microseconds=1)))
    stage.orders("a")
    stage.run()
    stage.orders("b")
    stage.run()
    stage.topic = replace(stage.topic, contract=contract)
    stage.orders("a", "b")

    log = stage.run()

    assert [row[3] for row in stage.verdicts(log)] == ["valid", "valid", "duplicate", "duplicate"]


def test_a_broker_s_clock_that_jumps_ahead_for_a_while_changes_no_verdict(stage: Stage) -> None:
    stage.create(partitions=1)
    ingest = stage.caught_up(stage.ingest())
    ingest.stop()
    now = datetime.now(UTC)

    def batch(offset: int, event_id: str, after: timedelta) -> None:
        """One record as Kafka's reader would bring it, appended by a clock that says `after` later."""
        value = stage.framed(order(event_id))
        row = (b"k", value, stage.topic.name, 0, offset, now + after, LOG_APPEND_TIME, None)
        ingest._commit(stage.spark.createDataFrame([row], KAFKA), {})

    batch(0, "a", timedelta())
    batch(1, "b", timedelta(hours=5))
    batch(2, "a", timedelta(minutes=10))
    batch(3, "b", timedelta(minutes=11))
    batch(4, "a", timedelta(minutes=61))

    verdicts = ["valid", "valid", "duplicate", "duplicate", "valid"]
    assert [row[3] for row in stage.verdicts(ingest.log)] == verdicts


def test_a_new_schema_is_learnt_when_it_shows_up_and_old_records_read_its_default(stage: Stage) -> None:
    stage.create(partitions=1)
    stage.orders("old")
    ingest = stage.caught_up(stage.ingest())
    note = {"name": "note", "type": "string", "default": "-"}
    newer = {**stage.schema, "fields": [*stage.schema["fields"], note]}
    newer_id = stage.registry.register(stage.subject, newer)
    stage.registry.stop()
    stage.produce(frame(newer_id, newer, order("new", note="hi")))
    stage.until(lambda: ingest.state == "retrying", ingest)
    retried = ingest.error
    stage.registry.start()
    stage.caught_up(ingest)
    ingest.stop()

    assert retried is not None and "registry" in retried.what
    assert [row[3] for row in stage.verdicts(ingest.log)] == ["valid", "valid"]
    assert "note" not in ingest.log.rows(0, 9).columns  # the project's newest schema decides the columns
    stage.adopt(newer)
    stage.orders("still old")
    stage.produce(frame(newer_id, newer, order("newest", note="ho")))
    log = stage.run()

    notes = {row.event_id: row.note for row in log.rows(0, log.end()).collect()}
    assert notes["old"] == notes["still old"] == "-"
    assert (notes["new"], notes["newest"]) == ("hi", "ho")
