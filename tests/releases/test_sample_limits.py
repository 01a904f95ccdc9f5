"""What a sample cannot say is said of what it was taken from, and of nothing else."""

from __future__ import annotations

from dataclasses import replace

from tests.releases.sampled_tables import BUYERS, LINES, MINUTES, NEWEST, SPENT
from twinlake.releases.sample_limits import limits
from twinlake.releases.sampled import SampledTopic, Taken

PART = Taken(by="records", records=50, of_records=1_500, topics={})
KEYS = replace(PART, by="keys", keys=3)
WHOLE = replace(PART, records=1_500, whole=True)
DELETED = {"orders": 1_769_860_800_000_000}


def test_each_kind_says_once_what_it_lacks_without_older_records() -> None:
    assert limits([BUYERS, NEWEST, SPENT, SPENT, MINUTES, LINES], PART, {}) == (
        "Counts and totals are of 50 of 1,500 records, and no estimate for all of history.",
        "A key whose newest record is older than the sample is in neither version.",
        "What is measured of a key is measured of its sampled records alone, in both versions.",
        "A window that began before the sample has its sampled records alone, in both versions.",
    )


def test_of_keys_every_record_was_read() -> None:
    assert limits([MINUTES], KEYS, {}) == (
        "Only rows of 3 keys were compared, drawn among those of the newest records.",
    )


def test_all_of_history_lacks_nothing_but_what_retention_has_deleted() -> None:
    deleted = (
        "Retention has deleted the records of topic orders up to 2026-01-31T12:00:00Z: neither version "
        "counts them here, and the live one still shows what it has made of them.",
    )
    assert limits([MINUTES], WHOLE, {}) == ()
    assert limits([MINUTES], WHOLE, DELETED) == deleted
    assert limits([MINUTES], KEYS, DELETED)[1:] == deleted
    assert limits([LINES], PART, DELETED) == limits([LINES], PART, {})


def test_topics_whose_samples_begin_at_one_time_need_no_word() -> None:
    noon, one = "2026-01-31T12:00:00Z", "2026-01-31T13:00:00Z"
    orders = SampledTopic(first_batch=3, last_batch=4, records=50, begin=noon, end=one)
    alike = replace(PART, topics={"orders": orders, "refunds": orders})
    other = replace(PART, topics={"orders": orders, "refunds": replace(orders, begin=one)})

    assert limits([LINES], alike, {}) == limits([LINES], PART, {})
    assert limits([LINES], other, {})[1:] == (
        f"The sampled records of the topics begin at different times: orders at {noon}, refunds at {one}.",
    )
