"""The oracle's verdicts where a contract was mended and what it had refused was judged again."""

from __future__ import annotations

from dataclasses import replace

from tests.oracle.judge import DAY_MS, MINUTE_MS, RULES, Judged, judge
from tests.oracle.mended import Mended, judge_mended
from tests.oracle.test_judge import NOW, SCHEMA, history, value
from tests.oracle.topic import Records

NEW = replace(RULES, statuses=RULES.statuses | {"refunded"})
REFUNDED = value(status="refunded")


def told(judged: Judged, records: Records) -> list[str]:
    return [judged.refused.get(row, ("valid", []))[0] for row in range(len(records))]


def verdicts(records: Records, since: int, replayed: int = 0) -> list[str]:
    """Of a history in partition 0."""
    mended = Mended(rules=NEW, since={0: since}, replayed={0: replayed})
    return told(judge_mended(records, {7: SCHEMA}, mended), records)


def test_without_a_change_it_is_what_the_plain_oracle_says() -> None:
    records = history((0, 0, value()), (0, 1, value()), (0, 2, REFUNDED), (0, 3, None),
                      (1, 70 * MINUTE_MS, value()), (0, 9, value(ordered_at=NOW - 22 * DAY_MS)))  # fmt: skip
    same = Mended(rules=RULES, since={}, replayed={0: 5, 1: 1})

    plain, mended = judge(records, {7: SCHEMA}), judge_mended(records, {7: SCHEMA}, same)

    assert (mended.refused, mended.late) == (plain.refused, plain.late)
    assert sorted(mended.rows) == sorted(plain.rows)


def test_the_new_rules_judge_what_comes_since_and_by_a_replay_what_was_refused_before() -> None:
    records = history((0, 0, REFUNDED), (0, 1, value(event_id="e2", status="lost")),
                      (0, 2, value(event_id="e3", status="refunded")))  # fmt: skip

    assert verdicts(records, since=2) == ["invalid", "invalid", "valid"]
    assert verdicts(records, since=2, replayed=3) == ["valid", "invalid", "valid"]


def test_a_replayed_record_is_a_duplicate_of_one_that_is_near_whichever_came_first() -> None:
    hour = 60 * MINUTE_MS
    records = history((0, 0, REFUNDED), (0, hour, value()), (0, hour + 1, REFUNDED))

    assert verdicts(records, since=3) == ["invalid", "valid", "invalid"]
    assert verdicts(records, since=3, replayed=3) == ["duplicate", "valid", "duplicate"]


def test_one_that_is_far_from_every_valid_one_is_valid_and_then_known_to_what_comes() -> None:
    hour = 60 * MINUTE_MS
    records = history((0, 0, REFUNDED), (0, 1, REFUNDED), (0, 2 * hour, value()), (0, 30, value()),
                      (0, 4 * hour, value()))  # fmt: skip

    assert verdicts(records, since=3, replayed=3) == ["valid", "duplicate", "valid", "duplicate", "valid"]
