"""What the scheduled batch work has to do: windows with new records, all of history once a day.

Decided on plain certificates first; then done, on real Delta.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.tables import orders
from tests.history import LATEST, MINUTE, SALES, START, version_of
from tests.longer import some
from tests.project import OURS
from tests.world import Killed, World
from tests.written_log import write_batch
from twinlake.base.times import format_moment
from twinlake.batch.attempt import Attempt
from twinlake.batch.due import WHOLE, Scope, due, gained, rewritten
from twinlake.batch.rebuild import chunks
from twinlake.batch.staged import Staged
from twinlake.kinds.kind import Kind
from twinlake.kinds.windows import ALL, Windows
from twinlake.lake.catalog.certificates import Certificate, Outcome
from twinlake.lake.catalog.maintained_version import MaintainedVersion, open_version
from twinlake.lake.catalog.segments import Closed
from twinlake.lake.log.log import Log
from twinlake.topics.topic import load_topic

NOW = datetime(2026, 2, 1, 12, 0, tzinfo=UTC)
LATE = Windows.between(START - 60 * MINUTE, START - 59 * MINUTE)
FRESH = Windows.between(START, START + MINUTE)
NONE = Windows(())


def made(hours_ago: float, kind: str = "rebuild", **more: Any) -> Certificate:
    usual: dict[str, Any] = {
        "id": f"{kind}-{hours_ago}", "job": "j", "kind": kind, "table": "t", "version": "v",
        "fingerprint": "f", "position": {"orders": 7}, "delta_version": 1, "step": 1, "through_segment": 1,
        "windows": ALL.to_json(), "rows_compared": 1, "differing": 0, "equal": True,
        "created_at": format_moment(NOW - timedelta(hours=hours_ago)),
    }  # fmt: skip
    return Certificate(**{**usual, **more})


def decide(table: Kind, newest: Certificate | None, last: Certificate | None, windows: Windows) -> Any:
    def changed(since: Certificate) -> Windows:
        assert since == last
        return windows

    opened: Any = SimpleNamespace(definition=table)
    return due(opened, newest, last, NOW, changed)


@pytest.mark.parametrize("table", [SALES, LATEST, orders.TABLE])
def test_all_of_history_is_due_before_the_first_certificate_and_while_a_difference_stands(
    table: Kind,
) -> None:
    unequal = made(0, equal=False, windows=LATE.to_json())

    assert decide(table, None, None, NONE) == WHOLE
    assert decide(table, made(1), None, NONE) == WHOLE
    assert decide(table, unequal, made(1), NONE) == WHOLE


@pytest.mark.parametrize("table", [SALES, LATEST, orders.TABLE])
@pytest.mark.parametrize("hours_ago", [24, 100, -1], ids=["a day", "days", "of the future"])
def test_all_of_history_is_due_once_a_day_however_often_windows_were_done_since(
    table: Kind, hours_ago: float
) -> None:
    last = made(0.25, windows=FRESH.to_json(), base=made(hours_ago).as_base)

    assert decide(table, last, last, NONE) == WHOLE


def test_what_has_changed_since_the_last_certificate_is_due() -> None:
    whole = made(20)
    last = made(0.25, windows=LATE.to_json(), base=whole.as_base)

    found = decide(SALES, made(0.2, "verify"), last, FRESH)

    assert found == Scope(windows=FRESH, base=last.as_base)
    assert found.base.whole_at == whole.created_at
    assert decide(SALES, last, last, ALL) == WHOLE


@pytest.mark.parametrize("table", [LATEST, orders.TABLE])
def test_a_table_without_windows_is_due_as_a_whole_or_not_at_all(table: Kind) -> None:
    assert decide(table, made(1), made(1), NONE) is None
    assert decide(table, made(1), made(1), ALL) == WHOLE


def test_what_all_rows_have_counted_is_verified_every_time_without_windows_too() -> None:
    last = made(1, "verify")

    assert decide(LATEST, last, last, NONE) == Scope(windows=NONE, base=last.as_base)
    assert decide(orders.TABLE, last, last, NONE) is None


# -- on real Delta


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    """Two closed segments."""
    made = World(spark=spark, lake=tmp_path)
    made.fill(segments=2)
    return made


def only(world: World, minute: int, count: int = 3) -> None:
    """Some more orders of one minute, in the log and in the version."""
    records = [record for record in world.orders.batch(200) if minute_of(record) == minute][:count]
    assert len(records) == count
    world.log.append(records)
    world.step()


def minute_of(record: dict[str, Any]) -> int:
    return int((record["ordered_at"] - START) // MINUTE)


def scope_since(world: World, since: Certificate) -> Any:
    def found(closed: Closed) -> Scope:
        assert gained(world.feed, closed.pin.position, closed.pin.position) == NONE
        return Scope(windows=gained(world.feed, since.position, closed.pin.position), base=since.as_base)

    return found


def test_only_windows_with_new_records_are_rebuilt_and_the_certificate_says_so(world: World) -> None:
    first, verified = world.rebuild().certificate, world.verify()
    only(world, 2)
    only(world, 5)
    corrupt = f"UPDATE delta.`{world.feed.path}` SET orders__n = orders__n + 1000 WHERE window_start = "
    world.spark.sql(corrupt + f"TIMESTAMP '{START + 7 * MINUTE}'")  # which no new record touches

    second = world.rebuild(windows=scope_since(world, first)).certificate

    assert second.equal and second.rows_compared <= 2 * 3 and second.base == first.as_base
    assert Windows.from_json(second.windows) == Windows.of(
        [int((START + minute * MINUTE).timestamp() * 1e6) for minute in (2, 5)], MINUTE
    )
    differing = {one["key"]["window_start"] for one in world.verify().differences}
    assert differing == {format_moment(START + 7 * MINUTE)}
    composed = world.verify(Scope(windows=Windows.from_json(second.windows), base=verified.as_base))
    assert composed.equal and composed.covers_all and composed.rows_compared == second.rows_compared


def test_where_the_log_has_gained_nothing_it_is_not_read_and_the_certificate_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.rebuild().certificate
    monkeypatch.setattr(world.log, "rows", lambda *_: pytest.fail("the log is read"))

    again = world.rebuild(windows=scope_since(world, first))

    assert (again.chunks, again.replaced, again.certificate.equal) == (0, False, True)
    assert again.certificate.covers_all and again.certificate.rows_compared == 0


@pytest.mark.parametrize(
    ("wrong", "rows"),
    some(
        [
            ("DELETE FROM {} WHERE region = 'south' AND {}", -1),
            ("INSERT INTO {0} SELECT * FROM {0} WHERE {1}", 1),
        ]
    ),
    ids=["lost", "doubled"],
)
def test_what_is_lost_or_doubled_in_other_windows_is_seen_by_what_all_rows_have_counted(
    world: World, wrong: str, rows: int
) -> None:
    before = world.verify()
    only(world, 2)
    scope = Scope(windows=Windows.between(START + 2 * MINUTE, START + 3 * MINUTE), base=before.as_base)
    sound = world.verify(scope)
    where = f"window_start = TIMESTAMP '{START + 7 * MINUTE}'"
    world.spark.sql(wrong.format(f"delta.`{world.feed.path}`", where))

    found = world.verify(scope)

    assert sound.equal and sound.evidence["_rows"] == before.evidence["_rows"] + 3 == 43
    (one,) = found.differences
    assert (found.equal, one["cause"], one["key"]) == (False, "elsewhere", {})
    assert one["batch"] == {"_rows": 43} and (one["speed"]["_rows"] - 43) * rows > 0


def test_a_rebuild_of_many_chunks_goes_over_the_log_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[tuple[int, int]] = []
    rows = world.log.rows
    monkeypatch.setattr(world.log, "rows", lambda *asked: reads.append(asked[:2]) or rows(*asked))

    rebuilt = world.rebuild(chunk_records=10)

    assert rebuilt.chunks == 4 and rebuilt.certificate.equal
    assert reads == [(0, 2)]
    assert world.shows() == world.expected()


def test_chunks_hold_about_as_many_rows_even_where_one_event_time_is_of_year_1(world: World) -> None:
    records = world.orders.batch(3)
    for record, year in zip(records, (1, 9999, 2026), strict=True):
        record["ordered_at"] = datetime(year, 1, 1, tzinfo=UTC)
    world.log.append(records)
    world.step()

    rebuilt = world.rebuild(chunk_records=11)
    parts = chunks(world.feed, world.closed(), ALL, 11)

    assert rebuilt.certificate.equal and rebuilt.chunks == len(parts) == 4
    grid, rows = "window_start", world.feed.rows()
    sizes = [rows.where(part.predicate(grid)).count() for part in parts]
    assert sum(sizes) == rows.count() and max(sizes) <= 2 * min(sizes)
    assert all(one.start is None or one.start.year == 2026 for part in parts for one in part.ranges)
    assert world.verify().equal


def test_a_due_rebuild_that_was_killed_goes_on_with_what_it_had_computed_and_with_its_windows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.rebuild().certificate
    only(world, 2)

    def killed(self: Attempt, part: Windows, found: Outcome) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "replacing", killed)
        with pytest.raises(Killed):
            world.rebuild(windows=scope_since(world, first), job="due")
    only(world, 5)
    with monkeypatch.context() as patch:
        patch.setattr(world.log, "rows", lambda *_: pytest.fail("the log is read again"))
        again = world.rebuild(windows=lambda closed: pytest.fail("asked again"), job="due").certificate

    assert again.equal and again.position == {"orders": 3}
    assert Windows.from_json(again.windows) == Windows.between(START + 2 * MINUTE, START + 3 * MINUTE)
    assert world.shows() == world.expected() and world.verify().equal


@pytest.mark.faults
def test_a_rebuild_that_was_killed_while_it_computed_computes_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*given: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Staged, "compute", killed)
        with pytest.raises(Killed):
            world.rebuild(job="killed")
    half = world.lake / "staging/killed/computed/_chunk=0"
    half.mkdir(parents=True)
    (half / "part-0.parquet").write_bytes(b"half a file")

    assert world.rebuild(job="killed").certificate.equal
    assert world.shows() == world.expected()


def test_a_result_of_which_files_are_gone_and_a_damaged_attempt_are_computed_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Attempt, part: Windows, found: Outcome) -> None:
        raise Killed

    for damage in ("files", "attempt"):
        with monkeypatch.context() as patch:
            patch.setattr(Attempt, "replacing", killed)
            with pytest.raises(Killed):
                world.rebuild(job=damage)
        staging = world.lake / "staging" / damage
        if damage == "files":
            next((staging / "computed").rglob("*.parquet")).unlink()
        else:
            (staging / "attempt.json").write_text('{"about": ')

        assert world.rebuild(job=damage, repair=True).certificate.equal
        assert world.shows() == world.expected()


def test_what_rebuilds_have_replaced_is_known_from_their_commits(world: World) -> None:
    before = world.pin()
    assert before.delta_version is not None
    world.rebuild(windows=FRESH)
    world.rebuild(windows=LATE)
    only(world, 5)

    assert rewritten(world.feed, before.delta_version, world.pin()) == FRESH | LATE
    assert rewritten(world.feed, world.pin().delta_version, world.pin()) == NONE
    (world.feed.path / f"_delta_log/{before.delta_version + 1:020}.json").unlink()
    assert rewritten(world.feed, before.delta_version, world.pin()) == ALL


def test_of_the_log_only_files_are_read_that_may_have_rows_of_the_windows(
    spark: SparkSession, tmp_path: Path
) -> None:
    """By the statistics on the event time: a rebuild of an hour does not scan years."""
    log = Log(spark, tmp_path, load_topic("orders", OURS))
    for _ in range(6):
        write_batch(log, 50)
    feed = open_version(tmp_path, version_of(SALES), {"orders": log})
    assert isinstance(feed, MaintainedVersion)
    times = log.all(0, 6).groupBy("batch").agg({"event.ordered_at": "min"}).sort("batch").collect()
    third = times[2][1].replace(second=0, microsecond=0, tzinfo=UTC)
    windows = Windows.between(third, third + MINUTE)

    found = feed.definition.partial(log.rows(0, 6), windows)

    held = found.count()
    everything = feed.definition.partial(log.rows(0, 6)).where(windows.predicate("window_start"))
    assert held == everything.count() > 0
    assert files_read(found) < 6 == files_read(everything)


def files_read(frame: Any) -> int:
    """By the metric of the scan, after it has run."""
    frame.collect()
    nodes = [frame._jdf.queryExecution().executedPlan()]
    for node in nodes:
        if node.metrics().contains("numFiles"):
            return int(node.metrics().apply("numFiles").value())
        kind = node.getClass().getSimpleName()
        if kind == "AdaptiveSparkPlanExec":
            nodes.append(node.executedPlan())
        elif kind.endswith("QueryStageExec"):
            nodes.append(node.plan())
        else:
            nodes += [node.children().apply(at) for at in range(node.children().size())]
    raise AssertionError("no scan")
