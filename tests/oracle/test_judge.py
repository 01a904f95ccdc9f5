"""The oracle's verdicts over hand-written histories."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import fastavro
import pytest

from tests.oracle.judge import DAY_MS, HOUR_MS, MINUTE_MS, judge
from tests.oracle.topic import Records
from tests.project import PROJECT

NOW = 1_790_000_000_000
SCHEMA = json.loads((PROJECT / "schemas" / "orders.v1.avsc").read_text())
PARSED = fastavro.parse_schema(SCHEMA)
SOUND = {
    "event_id": "e1", "order_id": 1, "customer": "c", "region": "r", "status": "paid",
    "amount": Decimal("1.00"), "ordered_at": NOW,
}  # fmt: skip


def value(**changes: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, PARSED, {**SOUND, **changes})
    return b"\x00\x00\x00\x00\x07" + out.getvalue()


def history(*entries: tuple[int, int, bytes | None]) -> Records:
    """Entries are (partition, Kafka timestamp after NOW in ms, value); offsets count up per partition."""
    records, nexts = Records(), dict[int, int]()
    for partition, after_ms, one in entries:
        records.partitions.append(partition)
        records.offsets.append(nexts.setdefault(partition, 0))
        nexts[partition] += 1
        records.timestamps_ms.append(NOW + after_ms)
        records.keys.append(b"c")
        records.values.append(one)
    return records


def verdicts(records: Records) -> list[tuple[str, list[str]]]:
    judged = judge(records, {7: SCHEMA})
    return [judged.refused.get(row, ("valid", [])) for row in range(len(records))]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (None, "null_value"),
        (b"", "bad_header"),
        (b"\x00\x00\x00\x00", "bad_header"),
        (b'{"event_id": "e1"}', "bad_header"),
        (b"\x00\x00\x00\x00\x08" + value()[5:], "unknown_schema"),
        (bytes(80), "unknown_schema"),
        (value()[:-1], "malformed_body"),
        (value() + b"\x00", "malformed_body"),
        (b"\x00\x00\x00\x00\x07", "malformed_body"),
        (value()[:5] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" + value()[5:], "malformed_body"),
        (value()[:5] + b"\x01" + value()[5:], "malformed_body"),
        (value().replace(b"e1", b"\xff\xfe"), "invalid_utf8:event_id"),
        (value(ordered_at=10**15), "time_out_of_range:ordered_at"),
    ],
)
def test_what_cannot_be_decoded_is_invalid(wrong: bytes | None, reason: str) -> None:
    assert verdicts(history((0, 0, wrong))) == [("invalid", [reason])]


def test_a_decimal_with_too_many_digits_cannot_be_decoded() -> None:
    wide = value().replace(b"\x02\x64", b"\x0c" + (10**12).to_bytes(6, "big"))

    assert verdicts(history((0, 0, wide))) == [("invalid", ["decimal_out_of_range:amount"])]


def test_a_decimal_of_no_bytes_is_no_number() -> None:
    sound = value()
    cents = b"\x02\x64"  # one byte, 100
    assert sound.count(cents) == 1

    assert verdicts(history((0, 0, sound.replace(cents, b"\0")))) == [("invalid", ["malformed_body"])]


def test_all_broken_rules_are_named() -> None:
    wrong = value(amount=Decimal("-0.01"), status="lost", region="", ordered_at=NOW + 5 * MINUTE_MS + 1)

    ((verdict, reasons),) = verdicts(history((0, 0, wrong)))
    assert verdict == "invalid"
    assert sorted(reasons) == [
        "ahead_of_kafka:ordered_at", "below_minimum:amount", "empty:region", "not_allowed:status",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lag_ms", "verdict"),
    [
        (-5 * MINUTE_MS, "valid"),
        (21 * DAY_MS, "valid"),
        (21 * DAY_MS + 1, "too_late"),
    ],
)
def test_lateness_is_kafka_time_minus_event_time(lag_ms: int, verdict: str) -> None:
    assert verdicts(history((0, 0, value(ordered_at=NOW - lag_ms))))[0][0] == verdict


def test_a_broken_rule_comes_before_being_too_late() -> None:
    assert verdicts(history((0, 0, value(status="lost", ordered_at=NOW - 22 * DAY_MS))))[0][0] == "invalid"


def test_an_id_is_a_duplicate_within_the_hour_of_its_last_valid_record() -> None:
    times = [0, HOUR_MS, HOUR_MS + 1, 2 * HOUR_MS + 1, 2 * HOUR_MS + 2]
    found = verdicts(history(*((0, after, value(ordered_at=NOW)) for after in times)))

    assert [verdict for verdict, _ in found] == ["valid", "duplicate", "valid", "duplicate", "valid"]
    assert found[1][1] == ["already_seen"]


def test_an_id_that_was_only_seen_on_refused_records_is_new() -> None:
    early = value(ordered_at=NOW - 22 * DAY_MS)

    found = verdicts(history((0, 0, value(status="lost")), (0, 1, early), (0, 2, value())))
    assert [verdict for verdict, _ in found] == ["invalid", "too_late", "valid"]


def test_across_partitions_the_earlier_record_is_the_original() -> None:
    found = verdicts(history((1, 5, value()), (0, 3, value())))

    assert [verdict for verdict, _ in found] == ["duplicate", "valid"]


def test_late_records_are_valid_and_counted() -> None:
    judged = judge(
        history((0, 3 * HOUR_MS, value()), (0, 3 * HOUR_MS + 1, value(event_id="e2"))), {7: SCHEMA}
    )

    assert (judged.verdicts()["valid"], judged.late) == (2, 1)
