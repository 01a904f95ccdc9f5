"""A release of tables that read tables is switched within one hold, though green comes later than blue."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from tests.releases.buyers import CHANGED, PROMISED, TABLES
from tests.releases.lake import Lake, order
from tests.releases.promised import promised_lake
from twinlake.base.errors import DeniedError
from twinlake.base.job import Run
from twinlake.base.times import utc_now
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.lake.open_lake import Held
from twinlake.releases import promote
from twinlake.speed.pause import Hold
from twinlake.speed.versions import Versions


@pytest.mark.faults
def test_a_view_is_switched_within_one_hold_in_which_what_it_comes_to_read_catches_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forth, where it comes to read a table that is new besides, and back."""
    with promised_lake(spark, tmp_path, PROMISED) as lake:
        lake.append([order(number) for number in range(30)])
        lake.promote(lake.build(TABLES))
        lake.promote(lake.build(CHANGED))
        tries = [switched_while_a_batch_comes(lake, monkeypatch, to) for to in (1, 2)]
        history, end = release_log.releases(lake.path), lake.server.lake.logs["orders"].end()

    assert tries == [1, 1]
    assert [made.tables for made in history[2:]] == [history[0].tables, history[1].tables]
    assert history[3].positions == {table: {"orders": end} for table in CHANGED}


def switched_while_a_batch_comes(lake: Lake, monkeypatch: pytest.MonkeyPatch, to: int) -> int:
    """How many holds it took to make the release live again, whose versions take a batch only within one."""
    versions, hold = lake.server.lake.versions, Versions.hold
    history = release_log.releases(lake.path)
    blue, green = (set(made.tables.items()) for made in (history[-1], history[to - 1]))
    known = {table for table, _ in blue}
    tries = 0

    def slowed(self: Versions) -> list[Hold]:
        """Green's own stored versions, a new table the last; blue's have taken a batch that they have not."""
        stored = dict(self._owners)
        named = sorted(name for name in green - blue if name in stored)
        late = [stored[name].hold(120) for name in sorted(named, key=lambda name: name[0] not in known)]
        for one in late:
            one.at.result(60)
        batch = lake.append([order(1000 * (len(history) + 1) + number) for number in range(5)])
        for name in blue & stored.keys():
            at = stored[name]
            wait_for("blue", lambda at=at: at.standing.position == batch or None, 60, every_s=0.02)
        return late

    @contextmanager
    def after_a_batch(self: Versions, held: Iterable[Version], limit_s: float, run: Run) -> Iterator[Held]:
        nonlocal tries
        tries += 1
        late = slowed(self) if tries == 1 else []
        with hold(self, held, limit_s, run) as still:
            for seconds, one in enumerate(late, start=1):
                threading.Timer(seconds, one.give_back).start()
            yield still

    with monkeypatch.context() as changed:
        changed.setattr(type(versions), "hold", after_a_batch)
        lake.do("rollback", approved_by="tester", to=to)
    return tries


def test_two_versions_that_follow_one_log_are_switched_while_it_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both are where the log is; it gets a batch between any two looks."""
    end = 7

    def position(version: SimpleNamespace) -> dict[str, int]:
        nonlocal end
        end += 1
        return {"orders": end}

    @contextmanager
    def hold(versions: Iterable[SimpleNamespace], *_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(positions=[position(one) for one in versions], renew=lambda: True)

    blue, green = (SimpleNamespace(table="t", name=name) for name in ("blue", "green"))
    versions = SimpleNamespace(
        get=lambda table, name: {"blue": blue, "green": green}[name], living=lambda: [blue, green],
        position=position, hold=hold,
    )  # fmt: skip
    lake = SimpleNamespace(versions=versions, path=None, clock=utc_now)
    committed: list[Release] = []
    monkeypatch.setattr(promote, "_finish", lambda lake, made: made)
    monkeypatch.setattr(release_log, "commit", lambda path, made: committed.append(made))
    before = Release(number=1, kind="initial", tables={"t": "blue"}, created_at="", approved_by="me")

    promote._switch(lake, before, replace(before, number=2, tables={"t": "green"}), Run(id="job"))  # type: ignore[arg-type]

    assert [made.positions for made in committed] == [{"t": {"orders": end}}]

    def refuse() -> None:
        raise DeniedError("plan p is rejected", "ben did so a moment ago", "")

    with pytest.raises(DeniedError):
        promote._switch(lake, before, replace(before, number=2, tables={"t": "green"}), Run(id="j"), refuse)  # type: ignore[arg-type]
    assert len(committed) == 1  # what was rejected while it was being made live is not
