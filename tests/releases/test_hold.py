"""A reader never goes back: what readers leave stands still until what they come to has all they saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from jobs.tables import sales_per_region
from tests.releases.lake import Lake, following_sql_server, order
from twinlake.base.errors import BusyError, TimedOutError
from twinlake.base.job import Run
from twinlake.base.times import utc_now
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Settings
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.releases import promote
from twinlake.speed.owner import Owner
from twinlake.speed.pause import Hold
from twinlake.speed.versions import Versions

TABLE = sales_per_region.TABLE
FIRST, SECOND = {TABLE.name: TABLE}, {TABLE.name: replace(TABLE, where="status <> 'cancelled'")}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake with two releases of one table; every test switches between them."""
    home = tmp_path_factory.mktemp("hold")
    with following_sql_server(home / "lake") as sql_url:
        lake = Lake(spark, home, sql_url)
        lake.append([order(number) for number in range(50)])
        lake.promote(lake.build(FIRST))
        lake.promote(lake.build(SECOND))
        yield lake
        lake.stop()


def live(lake: Lake) -> Release:
    found = release_log.live(lake.path)
    assert found is not None
    return found


def owners(lake: Lake) -> tuple[Owner, Owner]:
    """Of the version that is live, and of the one that is not."""
    versions, name = lake.server.lake.versions, live(lake).tables[TABLE.name]
    found = [versions.owner(version) for version in versions.living()]
    blue = next(owner for owner in found if owner.version.name == name)
    return blue, next(owner for owner in found if owner is not blue)


def switch(lake: Lake) -> dict:
    return lake.do("rollback", approved_by="tester", to=1 if live(lake).tables != release(lake, 1) else 2)


def release(lake: Lake, number: int) -> dict[str, str]:
    return release_log.releases(lake.path)[number - 1].tables


def one_more(lake: Lake) -> int:
    batch = lake.server.lake.logs["orders"].end()
    return lake.append([order(number) for number in range(100 * batch, 100 * batch + 5)])


def takes(owner: Owner, batch: int, seconds: float = 60) -> None:
    wait_for("the batch", lambda: owner.standing.position >= batch or None, seconds, every_s=0.02)


def in_every_hold(monkeypatch: pytest.MonkeyPatch, then: Callable[[int], None]) -> None:
    """`then(n)` is called in the n-th hold, after green has reached where blue stands."""
    catch_up, count = promote._catch_up, 0

    def and_then(*asked: object) -> None:
        nonlocal count
        catch_up(*asked)
        if count:  # the first time is before the first hold
            then(count)
        count += 1

    monkeypatch.setattr(promote, "_catch_up", and_then)


@pytest.mark.faults
def test_a_hold_that_lapses_is_taken_again_before_the_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    blue, green = owners(lake)
    slow: list[Hold] = []
    monkeypatch.setattr(promote, "HOLD_S", 0.3)

    def blue_moves_on_once(times: int) -> None:
        if times == 1:
            slow.append(green.hold(60))
            slow[0].at.result(30)
            takes(blue, one_more(lake))
            monkeypatch.setattr(promote, "HOLD_S", 20.0)
            slow[0].give_back()

    at_commit: list[tuple[int, int]] = []

    def commit(path: object, made: Release) -> Release:
        at_commit.append((made.positions[TABLE.name]["orders"], blue.standing.position))
        return committed(path, made)

    committed = release_log.commit
    in_every_hold(monkeypatch, blue_moves_on_once)
    monkeypatch.setattr(release_log, "commit", commit)

    switch(lake)

    ((reached, left),) = at_commit
    assert reached == left == lake.server.lake.logs["orders"].end()


def test_a_switch_that_never_gets_a_lasting_hold_ends_and_changes_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    blue, _ = owners(lake)
    before, held = live(lake), []
    monkeypatch.setattr(promote, "HOLD_S", 0.05)

    def blue_moves_on(times: int) -> None:
        held.append(times)
        takes(blue, one_more(lake))

    in_every_hold(monkeypatch, blue_moves_on)

    with pytest.raises(BusyError, match=f"release {before.number + 1} was not committed") as refused:
        switch(lake)

    assert refused.value.why == (
        "5 times readers of sales_per_region were further by then; a hold lasts 0.05 s"
    )
    assert held == [1, 2, 3, 4, 5]
    assert live(lake) == before
    assert refused.value.remedy.startswith("start again once `twinlake status` shows small lags")
    monkeypatch.undo()
    switch(lake)
    assert live(lake).number == before.number + 1


@pytest.mark.parametrize("holds", [True, False], ids=["as it is", "a mutant that holds nothing"])
def test_a_reader_never_goes_back_while_records_flow(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, holds: bool
) -> None:
    """A batch comes just before the commit and one just after; green is the slower one each time.

    The reader follows the release last of all, as a view does that is altered after the commit.
    """
    blue, green = owners(lake)
    seen: list[int] = []

    @contextmanager
    def not_holding(
        self: Versions, versions: Iterable[Version], limit_s: float, run: Run
    ) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(positions=[self.position(one) for one in versions], renew=lambda: True)

    def a_batch_comes() -> None:
        batch = one_more(lake)
        with suppress(TimedOutError):
            takes(blue, batch, 20 if not holds else 1)
        seen.append(blue.standing.position)

    def commit(path: object, made: Release) -> Release:
        slow.append(green.hold(60))
        slow[0].at.result(30)
        a_batch_comes()
        return committed(path, made)

    def follow(settings: Settings, number: int) -> None:
        a_batch_comes()
        seen.append(green.standing.position)
        slow[0].give_back()

    slow: list[Hold] = []
    committed = release_log.commit
    monkeypatch.setattr(release_log, "commit", commit)
    monkeypatch.setattr(promote, "follow_problem", follow)
    if not holds:
        monkeypatch.setattr(Versions, "hold", not_holding)

    switch(lake)

    assert (seen == sorted(seen)) is holds, seen


def test_a_version_that_nothing_holds_must_not_have_moved_before_the_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A view kind is where its log is: a batch may come while the stored version is brought there."""
    view, stored = (SimpleNamespace(table="t", name=name) for name in ("view", "stored"))
    at = {"view": 7, "stored": 7}
    coming = [8, 9]

    def position(version: SimpleNamespace) -> dict[str, int]:
        return {"orders": at[version.name]}

    def advance_to(version: SimpleNamespace, position: dict[str, int], run: Run) -> None:
        at[version.name] = position["orders"]

    @contextmanager
    def hold(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(positions=[position(view)], renew=renewed)

    def renewed() -> bool:
        return True

    def reached_then_a_batch_comes(lake: object, made: SimpleNamespace, *_: object) -> None:
        catch_up(lake, made, *_)
        at["view"] = coming.pop(0) if coming else at["view"]

    catch_up = promote._catch_up
    versions = SimpleNamespace(
        get=lambda table, name: {"view": view, "stored": stored}[name], living=lambda: [view, stored],
        position=position,
        advance_to=advance_to, hold=hold,
    )  # fmt: skip
    lake = SimpleNamespace(versions=versions, path=None, clock=utc_now)
    committed: list[Release] = []
    monkeypatch.setattr(promote, "_catch_up", reached_then_a_batch_comes)
    monkeypatch.setattr(promote, "_finish", lambda lake, made: made)
    monkeypatch.setattr(release_log, "commit", lambda path, made: committed.append(made))
    before = Release(number=1, kind="initial", tables={"t": "view"}, created_at="", approved_by="me")

    promote._switch(lake, before, replace(before, number=2, tables={"t": "stored"}), Run(id="job"))

    assert [made.positions for made in committed] == [{"t": {"orders": 9}}]
    assert at == {"view": 9, "stored": 9}
