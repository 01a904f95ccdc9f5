"""Each invariant holds between sound states, and says what is broken of planted ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from twinlake.base.errors import StalledVersionError, StoppedTopicError
from twinlake.lake import invariants as must
from twinlake.lake.invariants import (
    CertificateState,
    Evidence,
    LogState,
    ReaderState,
    ReleaseState,
    VersionState,
)
from twinlake.lake.self_check import refuse_broken_log, refuse_broken_version

COUNTS = {"valid": 6, "invalid": 2, "duplicate": 1, "too_late": 1}
OLD = LogState(
    topic="orders", batch=3, ends={(0, 0): 8, (0, 1): 4}, counts=COUNTS, watermark=100,
    held=10, originals={(0, 0): 6, (0, 1): 4}, distinct={(0, 0): 6, (0, 1): 4},
    acknowledged={(0, 0): 6, (0, 1): 4}, batches=(2, 3), quarantined=4,
)  # fmt: skip
NEW = LogState(
    topic="orders", batch=4, ends={(0, 0): 10, (0, 1): 4}, counts={**COUNTS, "valid": 8}, watermark=120,
    added=2, held=12, originals={(0, 0): 8, (0, 1): 4}, distinct={(0, 0): 8, (0, 1): 4},
    acknowledged={(0, 0): 8, (0, 1): 4}, batches=(2, 3, 4), quarantined=4,
)  # fmt: skip
REPLAYED = replace(
    NEW, kind="replay", ends=OLD.ends, counts={**COUNTS, "valid": 8, "invalid": 0}, copies=2,
    originals=OLD.originals, distinct=OLD.distinct, acknowledged=OLD.acknowledged, quarantined=2,
)  # fmt: skip
BEFORE = VersionState(
    name="sales a-1", position=3, step=5, segment=1, steps_open=2, records=10, history="x", steps=(4, 5)
)
AFTER = replace(BEFORE, position=4, step=6, steps_open=3, records=12, history="y", steps=(4, 5, 6))
CLOSED = replace(BEFORE, step=6, segment=2, steps_open=0, steps=(4, 5, 6))
EVIDENCE = Evidence(rows=8, low=80, high=800)
COUNTED = replace(AFTER, evidence=EVIDENCE)
ONE = ReleaseState(number=1, tables={"a": "a-1", "b": "b-1"}, positions={"a": {"orders": 3}})
TWO = ReleaseState(number=2, tables={"a": "a-2", "b": "b-1"}, positions={"a": {"orders": 4}})
READ = ReaderState(
    release=2, versions={"a": frozenset({"a-2"}), "b": frozenset({"b-1"})}, positions={"a": {"orders": 4}}
)
EQUAL = CertificateState(name="sales a-1", position={"orders": 4}, compared=5, differing=0, equal=True)

SOUND: list[tuple[Callable[..., list[str]], tuple[Any, ...]]] = [
    *((check, (OLD, NEW)) for check in must.LOG_STEPS),
    *((check, (OLD, REPLAYED)) for check in must.LOG_STEPS),
    *((check, (LogState(topic="orders"), OLD)) for check in must.LOG_STEPS),
    *((check, (BEFORE, AFTER)) for check in must.VERSION_STEPS),
    *((check, (BEFORE, CLOSED)) for check in must.VERSION_STEPS),
    (must.replay_changes_nothing, (REPLAYED, REPLAYED)),
    (must.quarantine_in_reach, (NEW,)),
    (must.quarantine_in_reach, (REPLAYED,)),
    (must.never_ahead_of_log, (AFTER, NEW)),
    (must.same_history, (AFTER, replace(NEW, history="y"))),
    (must.evidence_matches, (COUNTED, EVIDENCE)),
    (must.caught_up, (AFTER, NEW)),
    (must.speed_equals_batch, (EQUAL,)),
    (must.release_numbers_without_gap, (None, ONE)),
    (must.release_numbers_without_gap, (ONE, TWO)),
    (must.no_reader_goes_back, (ONE, TWO)),
    (must.no_reader_goes_back, (READ, READ)),
    (must.one_release_per_statement, (READ, [ONE, TWO])),
]
BROKEN: dict[str, tuple[Callable[..., list[str]], tuple[Any, ...], str]] = {
    "a record that was acknowledged is not there": (
        must.nothing_lost, (OLD, replace(NEW, originals={(0, 0): 7, (0, 1): 4})),
        "log orders, epoch 0, partition 0: 7 records are in the log, and 8 were acknowledged",
    ),
    "a partition is gone": (
        must.nothing_lost, (OLD, replace(NEW, originals={(0, 0): 8}, acknowledged=None)),
        "log orders, epoch 0, partition 1: 0 records are in the log, and there were 4",
    ),
    "fewer are counted": (
        must.nothing_lost, (OLD, replace(NEW, counts={"valid": 8}, held=8, added=0)),
        "log orders: 10 records were counted, now 8",
    ),
    "rows that are counted are not in storage": (
        must.nothing_lost, (OLD, replace(NEW, held=11)), "log orders: it counts 12 rows and has 11",
    ),
    "a batch lacks rows that it counts": (
        must.nothing_lost, (OLD, replace(NEW, added=1)), "log orders: batch 4 counts 2 rows and adds 1",
    ),
    "an original is there twice": (
        must.nothing_doubled, (OLD, replace(NEW, distinct={(0, 0): 7, (0, 1): 4})),
        "log orders, epoch 0, partition 0: 8 originals of 7 records",
    ),
    "more than there are offsets": (
        must.nothing_doubled, (OLD, replace(NEW, originals={(0, 0): 8, (0, 1): 5}, distinct=None,
                                            acknowledged=None)),
        "log orders, epoch 0, partition 1: 5 records are in the log, which ends at offset 4",
    ),
    "more than were produced": (
        must.nothing_doubled, (OLD, replace(NEW, acknowledged={(0, 0): 7, (0, 1): 4})),
        "log orders, epoch 0, partition 0: 8 records are in the log, and 7 were produced",
    ),
    "rows in storage that are not counted": (
        must.nothing_doubled, (OLD, replace(NEW, held=14)), "log orders: it counts 12 rows and has 14",
    ),
    "a batch adds rows that it does not count": (
        must.nothing_doubled, (OLD, replace(NEW, added=4)), "log orders: batch 4 counts 2 rows and adds 4",
    ),
    "more records than offsets": (
        must.nothing_doubled, (OLD, replace(NEW, ends={(0, 0): 9, (0, 1): 4}, originals=None)),
        "log orders: 2 more records were counted over 1 more offsets",
    ),
    "an offset goes back": (
        must.offsets_only_advance, (OLD, replace(NEW, ends={(0, 0): 10, (0, 1): 3})),
        "log orders, epoch 0, partition 1: the next offset was 4, now it is 3",
    ),
    "a partition is forgotten": (
        must.offsets_only_advance, (OLD, replace(NEW, ends={(0, 0): 10})),
        "log orders, epoch 0, partition 1: the next offset was 4, now it is None",
    ),
    "the log goes back": (
        must.batches_without_gap, (NEW, OLD), "log orders: it was at batch 4, now it is at 3",
    ),
    "a batch is left out": (
        must.batches_without_gap, (OLD, replace(NEW, batch=5)), "log orders: batch 5 follows 3",
    ),
    "a batch's commit is not there": (
        must.batches_without_gap, (OLD, replace(NEW, batches=(2, 4))), "log orders: batch 4 follows 2",
    ),
    "a batch is committed twice": (
        must.batches_without_gap, (OLD, replace(NEW, batches=(2, 3, 3, 4))), "log orders: batch 3 follows 3",
    ),
    "the newest batch is not committed": (
        must.batches_without_gap, (OLD, replace(NEW, batches=(2, 3))),
        "log orders: it is at batch 4, its last commit is 3",
    ),
    "a verdict changes without a replay": (
        must.verdicts_stand, (OLD, replace(NEW, counts={**COUNTS, "valid": 9, "invalid": 1})),
        "log orders: 2 records were invalid, now 1",
    ),
    "the watermark goes back": (
        must.watermark_never_back, (OLD, replace(NEW, watermark=99)),
        "log orders: the watermark was 100, now it is 99",
    ),
    "a replay changes something": (
        must.replay_changes_nothing, (REPLAYED, replace(REPLAYED, batch=5)),
        "log orders: batch were 4, now 5",
    ),
    "the quarantine hides a record": (
        must.quarantine_in_reach, (replace(NEW, quarantined=3),),
        "log orders: 4 records are in quarantine, it shows 3",
    ),
    "steps go back": (
        must.steps_without_gap, (AFTER, BEFORE), "sales a-1: it was at step 6, now it is at 5",
    ),
    "a step is gone": (
        must.steps_without_gap, (BEFORE, replace(AFTER, steps=(4, 6))), "sales a-1: step 6 follows 4",
    ),
    "the newest step is gone": (
        must.steps_without_gap, (BEFORE, replace(AFTER, steps=(4, 5))),
        "sales a-1: it is at step 6, its last commit is 5",
    ),
    "a closed segment opens": (
        must.segments_closed_once, (CLOSED, replace(AFTER, step=7)),
        "sales a-1: segment 2 was open, now 1, which was closed",
    ),
    "a segment closes without a step": (
        must.segments_closed_once, (BEFORE, replace(CLOSED, step=5)),
        "sales a-1: 1 segments were closed in 0 steps",
    ),
    "a position goes back": (
        must.positions_never_back, (AFTER, replace(AFTER, position=3, step=7)),
        "sales a-1: it was at batch 4, now it is at 3",
    ),
    "records are uncounted": (
        must.positions_never_back, (BEFORE, replace(AFTER, records=9)),
        "sales a-1: it had 10 records of its log, now 9",
    ),
    "a position moves by itself": (
        must.positions_never_back, (BEFORE, replace(AFTER, step=5)),
        "sales a-1: from batch 3 to 4 without a step",
    ),
    "a version is ahead": (
        must.never_ahead_of_log, (AFTER, OLD), "sales a-1: it is at batch 4, ahead of its log (3)",
    ),
    "the log has other counts": (
        must.same_history, (replace(AFTER, records=13), NEW),
        "sales a-1: up to batch 4 the log has 12 rows, not 13",
    ),
    "the log has other records": (
        must.same_history, (AFTER, replace(NEW, history="z")),
        "sales a-1: up to batch 4 the log has other records",
    ),
    "a version counted too much": (
        must.evidence_matches, (COUNTED, Evidence(rows=7, low=70, high=700)),
        "sales a-1: it has counted 8 records, more than the 7 of the log",
    ),
    "a version counted too little": (
        must.evidence_matches, (COUNTED, Evidence(rows=9, low=90, high=900)),
        "sales a-1: it has counted 8 records, fewer than the 9 of the log",
    ),
    "a version counted others": (
        must.evidence_matches, (COUNTED, Evidence(rows=8, low=81, high=800)),
        "sales a-1: it has counted 8 records, and not those of the log",
    ),
    "a version stays behind": (
        must.caught_up, (BEFORE, NEW), "sales a-1: it is at batch 3, its log at 4",
    ),
    "speed is not batch": (
        must.speed_equals_batch, (replace(EQUAL, equal=False, differing=1),),
        "sales a-1: 1 of 5 keys differ at orders batch 4",
    ),
    "a release is left out": (
        must.release_numbers_without_gap, (ONE, replace(TWO, number=3)), "release 3 follows 1",
    ),
    "the first release is not there": (
        must.release_numbers_without_gap, (None, TWO), "release 2 follows none",
    ),
    "a release shows less than the one before": (
        must.no_reader_goes_back, (ONE, replace(TWO, positions={"a": {"orders": 2}})),
        "table a: topic orders was seen up to batch 3, now 2",
    ),
    "a reader sees the release before": (
        must.no_reader_goes_back, (READ, replace(READ, release=1)), "release 2 was seen, now 1",
    ),
    "a statement sees two versions of a table": (
        must.one_release_per_statement,
        (replace(READ, versions={"a": frozenset({"a-1", "a-2"})}), [ONE, TWO]),
        "table a: one statement saw versions a-1, a-2",
    ),
    "a statement mixes releases": (
        must.one_release_per_statement, (replace(READ, release=None, versions={
            "a": frozenset({"a-1"}), "b": frozenset({"b-2"})}), [ONE, replace(TWO, tables={
                "a": "a-2", "b": "b-2"})]),
        "no release has all that one statement saw: a a-1, b b-2",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("check", "states"), SOUND)
def test_a_sound_lake_breaks_nothing(check: Callable[..., list[str]], states: tuple[Any, ...]) -> None:
    assert check(*states) == []


@pytest.mark.parametrize(("check", "states", "sentence"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_said(
    check: Callable[..., list[str]], states: tuple[Any, ...], sentence: str
) -> None:
    assert check(*states) == [sentence]


def test_every_predicate_is_tried_both_ways() -> None:
    predicates = {
        check
        for name, check in vars(must).items()
        if inspect.isfunction(check) and check.__module__ == must.__name__ and name[0] != "_"
    } - {must.log_broken, must.version_broken}

    assert {check for check, _ in SOUND} == {check for check, _, _ in BROKEN.values()} == predicates


def test_the_server_stops_a_batch_and_names_every_invariant_that_it_breaks() -> None:
    with pytest.raises(StoppedTopicError, match=r"batch 4 .* would break nothing_lost, offsets_only") as stop:
        refuse_broken_log(OLD, replace(NEW, held=None, originals=None, ends={(0, 0): 12, (0, 1): 3}, added=1))

    assert stop.value.facts == {"invariants": "nothing_lost, offsets_only_advance"}
    assert "twinlake up" in stop.value.remedy


def test_the_server_stalls_a_version_before_a_step_that_breaks_an_invariant() -> None:
    with pytest.raises(StalledVersionError, match=r"step 6 of sales a-1 .* positions_never_back") as stalled:
        refuse_broken_version(BEFORE, replace(AFTER, position=2, steps=None))

    assert stalled.value.facts == {"invariants": "positions_never_back"}
    assert stalled.value.why == "sales a-1: it was at batch 3, now it is at 2"


def test_what_nobody_has_counted_is_not_said_to_be_broken() -> None:
    bare = {"held": None, "originals": None, "distinct": None, "acknowledged": None, "batches": None}

    assert must.log_broken(replace(OLD, **bare), replace(NEW, **bare)) == {}  # type: ignore[arg-type]
