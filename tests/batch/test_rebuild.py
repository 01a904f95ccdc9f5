"""The batch layer on real Delta: rebuild, certificate, repair, merge, and all that beside the stream."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.history import MINUTE, START
from tests.world import Killed, World
from twinlake.base.errors import BusyError, SilentSkipError
from twinlake.base.job import CancelledError, Run
from twinlake.base.times import parse_moment
from twinlake.batch.attempt import Attempt
from twinlake.batch.maintain import drop_old_commits
from twinlake.batch.merge import choose
from twinlake.batch.rebuild import REPLACE_TRIES, Rebuilt, replace_closed
from twinlake.batch.staged import Staged
from twinlake.kinds.windows import ALL, Windows
from twinlake.lake.catalog.certificates import Outcome
from twinlake.lake.catalog.segments import Closed, Segment, batch_epoch, segment_of, segments
from twinlake.lake.delta import delta
from twinlake.lake.delta.appender import Appender


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    """Two closed segments and an open one."""
    made = World(spark=spark, lake=tmp_path)
    made.fill(segments=2)
    made.produce()
    made.step()
    return made


def staged(world: World, closed: Closed) -> Staged:
    made = Staged(world.feed, world.lake / "staging" / "test")
    made.compute(closed, ALL, [ALL])
    return made


def test_a_rebuild_replaces_closed_segments_by_one(world: World) -> None:
    rebuilt = world.rebuild()

    assert (rebuilt.certificate.equal, rebuilt.replaced) == (True, True)
    assert rebuilt.certificate.position == {"orders": 3}
    assert [segment.number for segment in segments(world.feed)] == [world.at.segment - 1]
    assert world.shows() == world.expected()


def test_a_late_replace_with_an_outdated_segment_is_refused(world: World) -> None:
    """It would not conflict but stand beside the newer base and count twice (9,000 became 15,000)."""
    late, epoch = world.closed(), batch_epoch(world.feed)
    batch = staged(world, late)
    world.produce()
    world.step()
    world.rebuild()
    shown = world.shows()

    with pytest.raises(SilentSkipError):
        replace_closed(batch, 0, late, ALL, lambda: world.at.segment, epoch, Run(id="late"), same=True)

    assert world.shows() == shown == world.expected()


def test_a_replace_of_an_open_segment_is_refused(world: World) -> None:
    """Steps that come after would be in a segment whose rows are replaced."""
    closed = world.closed()

    with pytest.raises(BusyError, match="not closed"):
        replace_closed(
            staged(world, closed), 0, closed, ALL, lambda: closed.through, 1, Run(id="early"), same=True
        )

    assert world.shows() == world.expected()


def test_a_corrupted_partial_is_found_named_and_repaired_only_when_told(world: World) -> None:
    world.spark.sql(
        f"UPDATE delta.`{world.feed.path}` SET orders__n = orders__n + 1000"
        " WHERE region = 'north' AND _segment = 0"
    )
    keys = {(region, minute) for region, minute in world.expected() if region == "north"}
    found = world.verify()
    refused = world.rebuild()

    assert not found.equal and not refused.certificate.equal and not refused.replaced
    assert {one["cause"] for one in found.differences} == {"state_differs"}
    assert {one["key"]["region"] for one in found.differences} == {"north"} and 0 < found.differing <= len(
        keys
    )
    one = found.differences[0]
    assert one["columns"] == ["orders__n"] and one["speed"]["orders"] == one["batch"]["orders"] + 1000
    assert world.shows() != world.expected()

    repaired = world.rebuild(repair=True)

    assert repaired.replaced and not repaired.certificate.equal
    assert world.verify().equal and world.shows() == world.expected()


def test_lost_and_doubled_rows_are_told_apart(world: World) -> None:
    table = f"delta.`{world.feed.path}`"
    world.spark.sql(f"DELETE FROM {table} WHERE region = 'south'")
    world.spark.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE region = 'east'")

    causes = {one["key"]["region"]: one["cause"] for one in world.verify().differences}

    assert causes == {"south": "only_in_batch", "east": "counted_more_than_once"}


def test_a_rebuild_of_a_range_leaves_other_windows_alone(world: World) -> None:
    world.spark.sql(f"UPDATE delta.`{world.feed.path}` SET orders__n = orders__n + 1000")
    half = Windows.between(start=START + 2 * MINUTE, end=START + 5 * MINUTE)

    world.rebuild(windows=half, repair=True)

    wrong = {minute for (region, minute), row in world.shows().items() if row[1] >= 1000}
    assert wrong == {minute for _, minute in world.expected()} - {START + n * MINUTE for n in (2, 3, 4)}


def test_a_rebuild_of_a_range_writes_files_again_only_where_others_share_them(world: World) -> None:
    def span(path: str) -> tuple[datetime, datetime]:
        file = world.feed.appender.files()[path]
        return parse_moment(file.least("window_start")), parse_moment(file.greatest("window_start"))

    world.rebuild(chunk_records=20)
    before = {path: span(path) for path in world.feed.appender.files()}
    middle = sorted(first for first, _ in before.values())[len(before) // 2]
    late = Windows.between(start=middle)

    assert world.rebuild(windows=late).certificate.equal

    after = set(world.feed.appender.files())
    earlier = {path for path, (_, last) in before.items() if last < middle}
    assert earlier and after & set(before) == earlier
    assert world.shows() == world.expected() and world.verify().equal


def test_a_long_rebuild_in_chunks_is_continued_after_a_cancel_and_never_half_done(world: World) -> None:
    closed, run = world.closed(), Run(id="long")
    done: list[str] = []

    def cancel_after_two(progress) -> None:
        done.append(progress.message)
        if len([message for message in done if message.startswith("replacing")]) == 2:
            run.cancelled.set()

    run.report = cancel_after_two
    staging = world.lake / "staging" / "long"
    from twinlake.batch.rebuild import rebuild

    with pytest.raises(CancelledError):
        rebuild(world.feed, closed, lambda: world.at.segment, run, staging, "2026", chunk_records=20)
    assert world.shows() == world.expected()
    run.cancelled.clear()
    run.report = lambda progress: None
    again = rebuild(
        world.feed, world.closed(), lambda: world.at.segment, run, staging, "2026", chunk_records=20
    )

    assert (again.chunks, again.skipped, again.certificate.equal) == (3, 2, True)
    assert world.shows() == world.expected()


def rebuild_in_chunks(world: World, monkeypatch: pytest.MonkeyPatch, kill: str | None, calls: int) -> Rebuilt:
    """A repair of three chunks, ended at this call of the method of the attempt, if one is named."""
    made = iter(range(calls))
    with monkeypatch.context() as patch:
        if kill:
            method = getattr(Attempt, kill)

            def killed(self: Attempt, part: Windows, found: Outcome) -> None:
                if next(made, None) is None:
                    raise Killed
                method(self, part, found)

            patch.setattr(Attempt, kill, killed)
        return world.rebuild(chunk_records=20, repair=True, job="long")


def corrupt(world: World) -> None:
    """A thousand too much in every row of the first segment."""
    world.spark.sql(f"UPDATE delta.`{world.feed.path}` SET orders__n = orders__n + 1000 WHERE _segment = 0")


@pytest.mark.faults
@pytest.mark.parametrize(
    ("kill", "calls", "skipped"),
    [("replacing", 2, 2), ("replaced", 0, 1), ("replaced", 1, 2)],
    ids=["before a commit", "after the first commit", "after a later commit"],
)
def test_a_repair_that_was_killed_goes_on_and_tells_every_difference(
    world: World, monkeypatch: pytest.MonkeyPatch, kill: str, calls: int, skipped: int
) -> None:
    corrupt(world)
    differing = world.verify().differing
    with pytest.raises(Killed):
        rebuild_in_chunks(world, monkeypatch, kill, calls)
    world.produce()
    world.step()

    again = rebuild_in_chunks(world, monkeypatch, None, 0)

    assert (again.chunks, again.skipped, again.replaced) == (3, skipped, True)
    assert (again.certificate.differing, again.certificate.position) == (differing, {"orders": 3})
    assert world.shows() == world.expected() and world.verify().equal


def killed_after_replacing(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], int]:
    """What the attempt had noted of its first chunk, and how many rows still differ."""
    corrupt(world)
    with pytest.raises(Killed):
        rebuild_in_chunks(world, monkeypatch, "replaced", 0)
    told = json.loads((world.lake / "staging/long/attempt.json").read_text())["replacing"]["outcome"]
    return told, world.verify().differing


@pytest.mark.faults
def test_a_repair_begins_anew_where_somebody_else_used_the_lane_and_still_tells_what_it_repaired(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, left = killed_after_replacing(world, monkeypatch)
    world.rebuild(windows=Windows.between(start=START + 500 * MINUTE))

    again = rebuild_in_chunks(world, monkeypatch, None, 0)

    assert (again.skipped, again.certificate.differing) == (0, told["differing"] + left)
    assert world.shows() == world.expected() and world.verify().equal


@pytest.mark.faults
def test_a_repair_whose_commit_is_cleaned_up_before_it_goes_on_still_tells_what_it_repaired(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was interrupted may be continued days later; its commit's file is kept for hours."""
    told, left = killed_after_replacing(world, monkeypatch)
    world.produce()
    world.step()
    clean_up(world)

    again = rebuild_in_chunks(world, monkeypatch, None, 0)

    assert (again.skipped, again.certificate.differing) == (0, told["differing"] + left)
    assert told["differing"] and world.shows() == world.expected() and world.verify().equal


def test_rebuilds_beside_appends_and_optimize_keep_totals_exact(world: World) -> None:
    """Appends go on in the owner's thread, OPTIMIZE in another; a rebuild that loses tries again."""
    errors: list[BaseException] = []

    def guarded(work) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def append() -> None:
        for _ in range(6):
            world.produce(5)
            world.step()

    def optimize() -> None:
        for _ in range(2):
            try:
                world.spark.sql(f"OPTIMIZE delta.`{world.feed.path}`")
            except Exception as error:
                assert "CONCURRENT" in str(error).upper()

    closed = world.closed()
    threads = [guarded(append), guarded(optimize)]
    outcomes = []
    for _ in range(2):
        try:
            outcomes.append(world.rebuild(closed).certificate.equal)
        except BusyError:
            outcomes.append("busy")
    for thread in threads:
        thread.join()

    assert errors == [] and set(outcomes) <= {True, "busy"} and True in outcomes
    assert world.at.position == 9 and world.shows() == world.expected()


def rewritten(world: World, path: str) -> None:
    """Somebody else has moved a data file's rows into another file."""
    foreign = Appender(world.feed.path, [])
    into = {"_segment": str(segment_of(path))}
    added = foreign.adopt([world.feed.path / path], into)
    foreign.commit(added, "somebody", foreign.transaction("somebody") + 1, {}, [path])


@pytest.mark.parametrize("times", [1, REPLACE_TRIES])
def test_a_rebuild_looks_again_where_somebody_rewrites_what_it_replaces(
    world: World, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    closed, left, beside = world.closed(), iter(range(times)), Staged.beside

    def raced(staged: Staged, files: Mapping[str, int], windows: Windows) -> list[Path]:
        found = beside(staged, files, windows)
        if next(left, None) is not None:
            rewritten(world, next(path for path in world.feed.appender.files() if segment_of(path) == 0))
        return found

    monkeypatch.setattr(Staged, "beside", raced)
    half = Windows.between(start=START + 2 * MINUTE)

    if times == REPLACE_TRIES:
        with pytest.raises(BusyError, match="changed beside the rebuild"):
            world.rebuild(closed, windows=half)
    else:
        assert world.rebuild(closed, windows=half).replaced
    assert world.verify().equal and world.shows() == world.expected()


def test_rows_of_a_file_that_tells_nothing_of_its_windows_are_kept(world: World) -> None:
    for path in [*world.feed.appender.files()]:
        rewritten(world, path)
    world.feed = replace(world.feed, appender=Appender(world.feed.path, []))

    assert world.rebuild(windows=Windows.between(start=START + 2 * MINUTE)).replaced
    assert world.verify().equal and world.shows() == world.expected()


def test_merging_closed_segments_changes_nothing_that_is_shown(world: World) -> None:
    merged = world.merge()

    assert merged == (0, 1)
    assert [(segment.number, len(segment.files)) for segment in segments(world.feed)] == [(1, 1), (2, 1)]
    assert world.verify().equal and world.shows() == world.expected()


def segment(number: int, files: int, size: int) -> Segment:
    """One of so many files, which have `size` bytes together."""
    names = [f"{number}/{file}" for file in range(files)]
    return Segment(number=number, files={names[0]: size} | dict.fromkeys(names[1:], 0))


def sized(*bytes_: int) -> list[Segment]:
    return [segment(number, 1, size) for number, size in enumerate(bytes_)]


@pytest.mark.parametrize(
    ("closed", "chosen"),
    [
        ([], None),
        (sized(10), None),
        (sized(10, 10), (0, 1)),
        (sized(100, 10), None),
        (sized(200, 30, 10, 10), (1, 3)),
        ([segment(4, 50, 10)], (4, 4)),
    ],
)
def test_segments_of_like_size_are_merged_and_giants_left_alone(closed, chosen) -> None:
    found = choose(closed)
    assert ((found[0].number, found[-1].number) if found else None) == chosen
    assert found == closed[len(closed) - len(found) :]


def test_rows_are_rewritten_logarithmically_often() -> None:
    """1,000 segments of one size: every row is written about log(n) times, and few segments are left."""
    held: list[Segment] = []
    written = 0
    for number in range(1000):
        held.append(segment(number, 50, 100))
        chosen = choose(held)
        if chosen:
            size = sum(one.bytes for one in chosen)
            written += size
            held = [*held[: len(held) - len(chosen)], segment(number, 1, size)]

    assert written / (1000 * 100) < 12
    assert len(held) < 12


def test_commit_files_before_an_old_checkpoint_go_and_the_version_stands_where_it_stood(world: World) -> None:
    """A day of steps leaves 86,400 files otherwise; the newest step's metadata survives all clean-up."""
    from twinlake.speed.advance import standing

    newest = delta.newest_version(world.feed.path)

    gone = clean_up(world)

    left = sorted(int(f.stem) for f in (world.feed.path / "_delta_log").glob("*.json") if f.stem.isdigit())
    assert gone > 0 and left == [newest]
    assert standing(world.feed) == world.at and world.shows() == world.expected()
    world.produce()
    world.step()
    assert world.shows() == world.expected()


def clean_up(world: World) -> int:
    """What the lake server does every hour, long after a checkpoint of now."""
    snapshot = delta.snapshot(world.spark, world.feed.path)
    snapshot.deltaLog().checkpoint(snapshot, world.spark._jvm.scala.Option.empty())
    return drop_old_commits(world.feed.path, now_s=4e9)
