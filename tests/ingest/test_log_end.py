"""Where a log stands, and what it refuses, without any service."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from twinlake.base.errors import StoppedTopicError
from twinlake.ingest.decide import Decision
from twinlake.ingest.log_end import LogEnd
from twinlake.kinds.clock import IDLE, advance_watermark

SECOND = 1_000_000
ENDS = {0: {0: 10, 1: 5}}
END = LogEnd(topic="orders", batch=3, topic_id="a", topics={0: "a"}, ends=ENDS, counts={"valid": 15})


def decision(seen: dict[int, int], event_times: dict[int, int]) -> Decision:
    """What a batch says of times; the rest does not matter here."""
    none = np.array([], dtype=np.int64)
    return Decision(
        records=1, skips=False, codes=(), width=1, spans={}, ends={}, seen=seen, event_times=event_times,
        counted={partition: seen[partition] for partition in event_times}, counts={},
        schema_ids=frozenset(), unreadable={}, order=none, row_codes=none, high=none, low=none, times=none,
    )  # fmt: skip


def test_a_log_s_end_survives_its_commit() -> None:
    text = json.dumps(END.metadata("batch", 4))

    assert LogEnd.of("orders", json.loads(text)) == END


def test_a_log_ahead_of_the_broker_is_refused() -> None:
    assert END.refuse("a", {0: 0, 1: 0}, {0: 10, 1: 5}, "LogAppendTime") is None
    behind = END.refuse("a", {0: 0, 1: 0}, {0: 9, 1: 5}, "LogAppendTime")
    without = END.refuse("a", {0: 0}, {0: 10}, "LogAppendTime")

    assert behind is not None and "partition 0: log 10, broker 9" in behind.what
    assert without is not None and "partition 1: log 5, broker 0" in without.what


def test_a_partition_that_began_and_lost_records_before_it_was_read_is_refused() -> None:
    refused = END.refuse("a", {0: 0, 1: 0, 2: 7}, {0: 10, 1: 5, 2: 9}, "LogAppendTime")

    assert refused is not None and "partition 2 offsets 0 to 6" in refused.what


def test_an_empty_log_starts_where_the_topic_starts() -> None:
    assert LogEnd(topic="orders").starts({0: 4, 1: 0}) == {0: 4, 1: 0}
    assert END.starts({0: 0, 1: 0, 2: 0}) == {0: 10, 1: 5, 2: 0}


def test_the_watermark_is_the_least_of_active_partitions_and_never_goes_back() -> None:
    idle = int(IDLE.total_seconds()) * SECOND
    assert advance_watermark(None, {0: 100, 1: 100}, {}) is None
    assert advance_watermark(None, {0: 100, 1: 100}, {0: 90, 1: 40}) == 40
    assert advance_watermark(70, {0: 100, 1: 100}, {0: 90, 1: 40}) == 70
    assert advance_watermark(70, {0: 101 + idle, 1: 100}, {0: 90, 1: 40}) == 90


def test_a_clock_that_was_ahead_in_one_partition_makes_the_others_idle_until_its_next_record() -> None:
    hour = 3600 * SECOND
    both = {0: 100, 1: 100}
    end = replace(END, seen=both, counted=both, event_times={0: 90, 1: 40}, watermark=40)
    ahead = end.after(decision(seen={0: hour}, event_times={0: 95}), "a", [])
    back = ahead.after(decision(seen={0: 110, 1: 110}, event_times={0: 99, 1: 96}), "a", [])

    assert (ahead.watermark, back.watermark, back.seen) == (95, 96, {0: 110, 1: 110})


def test_only_a_record_that_counts_for_the_watermark_keeps_its_partition_active() -> None:
    idle = int(IDLE.total_seconds()) * SECOND
    end = END.after(decision(seen={0: 100, 1: 100}, event_times={0: 90, 1: 40}), "a", [])
    later = 200 + idle
    # partition 1 goes on, with times in the future or refused
    end = end.after(decision(seen={1: later}, event_times={}), "a", [])
    held = end.after(decision(seen={0: 110, 1: later}, event_times={0: 99}), "a", [])
    freed = held.after(decision(seen={0: later, 1: later}, event_times={0: later}), "a", [])

    assert (held.watermark, freed.watermark) == (40, later)
    text = json.dumps(freed.metadata("batch", 4))
    assert LogEnd.of("orders", json.loads(text)) == freed
    # of a log of before it is taken for granted that all of them count
    told = json.loads(text)
    del told["counted"]
    assert LogEnd.of("orders", told).counted == freed.seen


def test_an_accepted_topic_starts_without_active_partitions() -> None:
    from twinlake.ingest.accept import _accepted

    seen = replace(END, seen={0: 1}, event_times={0: 1}, watermark=1)
    change, accepted, _ = _accepted(seen, "b", {0: 0}, {0: 3})

    assert (change, accepted.epoch, accepted.batch, accepted.watermark) == ("recreated", 1, 4, 1)
    assert accepted.ends == {0: {0: 10, 1: 5}, 1: {0: 0}} and accepted.seen == {}


def test_a_broker_that_is_behind_in_one_partition_costs_the_others_no_record() -> None:
    from twinlake.ingest.accept import _accepted

    # 1 has three records that were not read yet, 2 is new, of 3 retention took two before they were read
    ends = {0: {0: 10, 1: 5, 3: 1}}
    change, accepted, lost = _accepted(
        replace(END, ends=ends), "a", {0: 0, 1: 0, 2: 0, 3: 3}, {0: 9, 1: 8, 2: 4, 3: 6}
    )

    assert (change, accepted.epoch, accepted.offsets) == ("behind", 1, {0: 9, 1: 5, 2: 0, 3: 3})
    assert lost == {3: (1, 3)} and accepted.gaps == {1: {3: [(1, 3)]}}
    # the note stays when the commit that told it is cleaned up
    _, again, _ = _accepted(accepted, "a", {0: 0, 1: 0, 2: 0, 3: 8}, {0: 9, 1: 8, 2: 4, 3: 9})
    kept = LogEnd.of("orders", json.loads(json.dumps(again.metadata("batch", 4))))
    assert kept.gaps == {1: {3: [(1, 3), (3, 8)]}}


def test_what_a_topic_that_was_made_again_has_lost_already_is_noted() -> None:
    from twinlake.ingest.accept import _accepted

    _, accepted, lost = _accepted(END, "b", {0: 0, 1: 7}, {0: 3, 1: 9})

    assert (accepted.offsets, lost) == ({0: 0, 1: 7}, {1: (0, 7)})


def test_a_batch_that_would_break_an_invariant_is_refused_before_its_commit() -> None:
    next_one = replace(END, batch=4, ends={0: {0: 12, 1: 5}}, counts={"valid": 17})
    END.refuse_broken(next_one, "batch", 2)

    with pytest.raises(StoppedTopicError, match=r"batch 4 of topic orders .* break nothing_lost\n") as lost:
        END.refuse_broken(next_one, "batch", 1)
    with pytest.raises(StoppedTopicError, match="offsets_only_advance"):
        END.refuse_broken(replace(next_one, ends={0: {0: 17, 1: 4}}), "batch", 2)

    assert lost.value.why == "log orders: batch 4 counts 2 rows and adds 1"
