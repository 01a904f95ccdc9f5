"""What is known of the backups in the folder that the settings name, without Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.small_lake.small import unpack
from twinlake.backup.take import take
from twinlake.base.errors import TwinlakeError
from twinlake.base.job import Job, Run
from twinlake.base.times import format_moment
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.server.backups import BackupState, BackupWatch, do_backup
from twinlake.server.job_models import BackupParams

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
FAILED = Job(
    id="j", kind="backup", params={}, state="failed", created_at=format_moment(NOW),
    ended_at=format_moment(NOW + timedelta(seconds=1)), error=TwinlakeError("it failed").to_json(),
)  # fmt: skip


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of a lake with a release, and a folder for its backups."""
    home = tmp_path / "home"
    unpack(0, home)
    (home / "twinlake.toml").write_text(f'[backup]\nfolder = "{tmp_path / "backups"}"\n')
    return Settings(home=home)


def lake_id(settings: Settings) -> str:
    about = formats.known(settings.lake)
    assert about is not None
    return about.id


def looked(settings: Settings, *jobs: Job) -> BackupState:
    watch = BackupWatch(settings, lake_id(settings), jobs)
    watch.look()
    state = watch.state()
    assert state is not None
    return state


def test_where_no_folder_is_set_nothing_is_known_and_nobody_looks(tmp_path: Path) -> None:
    watch = BackupWatch(Settings(home=tmp_path), "id", [FAILED])
    watch.start()

    assert watch.state() is None and not watch._thread.is_alive()


def test_before_the_first_one_the_age_is_counted_from_the_first_release(settings: Settings) -> None:
    state = looked(settings)

    first = release_log.releases(settings.lake)[0].created_at
    assert state == BackupState(newest=None, since=first, failed=None)
    assert state.counted_from == first
    assert not settings.values.backup.place.exists()  # type: ignore[union-attr]


def test_a_folder_that_had_some_and_has_none_is_a_failure_until_there_is_one(settings: Settings) -> None:
    place = settings.values.backup.place
    assert place is not None
    take(settings, place, Run(id="t"), lambda: NOW)
    watch = BackupWatch(settings, lake_id(settings), [])
    watch.look()

    for _ in range(2):
        if place.exists():
            place.rename(place.with_name("elsewhere"))
        watch.look()
        state = watch.state()
        assert state is not None and state.failed is not None and state.newest == format_moment(NOW)
        assert "has none any more" in state.failed["what"] and format_moment(NOW) in state.failed["why"]

    take(settings, place, Run(id="t"), lambda: NOW + timedelta(hours=1))
    watch.look()
    state = watch.state()
    assert state is not None and state.failed is None
    assert state.newest == format_moment(NOW + timedelta(hours=1))


def test_the_job_does_not_begin_again_where_a_disk_is_not_mounted(settings: Settings) -> None:
    place = settings.values.backup.place
    assert place is not None
    lake: Any = SimpleNamespace(settings=settings, clock=lambda: NOW)
    do_backup(lake, BackupParams(), Run(id="t"))
    place.rename(place.with_name("unmounted"))
    place.mkdir()

    with pytest.raises(TwinlakeError, match="has none any more") as error:
        do_backup(lake, BackupParams(), Run(id="t"))
    assert f"begin again: `twinlake backup {place}`" in error.value.remedy and not [*place.iterdir()]
    failed = looked(settings).failed
    assert failed is not None and failed["what"] == error.value.what, "who has just started knows it"

    take(settings, place, Run(id="t"), lambda: NOW)
    do_backup(lake, BackupParams(), Run(id="t"))
    assert looked(settings).failed is None


def test_the_newest_counts_and_one_that_failed_before_it_is_over(settings: Settings) -> None:
    place = settings.values.backup.place
    assert place is not None
    at = NOW + timedelta(seconds=2)
    for later in (timedelta(days=-1), timedelta()):
        take(settings, place, Run(id="t"), lambda later=later: at + later)  # type: ignore[misc]
    again = replace(FAILED, id="k", ended_at=format_moment(at + timedelta(seconds=1)))

    assert looked(settings, FAILED) == BackupState(newest=format_moment(at), since=None, failed=None)
    assert looked(settings, again, FAILED).failed == FAILED.error
    assert looked(settings, replace(again, state="succeeded"), FAILED).failed is None
    assert looked(settings, replace(again, kind="verify"), FAILED).failed is None


@pytest.mark.parametrize("state", ["cancelled", "interrupted", "queued", "running"])
def test_what_somebody_has_cancelled_or_a_restart_has_ended_has_not_failed(
    settings: Settings, state: str
) -> None:
    assert looked(settings, replace(FAILED, state=state)).failed is None  # type: ignore[arg-type]


def test_a_folder_that_is_another_lake_s_or_cannot_be_read_is_a_failure_until_it_can(
    settings: Settings,
) -> None:
    place = settings.values.backup.place
    assert isinstance(place, Path)
    made = take(settings, place, Run(id="t"), lambda: NOW)
    watch = BackupWatch(settings, lake_id(settings), ())
    watch.look()
    moved = place.with_name("moved")

    place.rename(moved)
    place.write_text("no folder")
    watch.look()
    unreadable = watch.state()
    place.unlink()
    moved.rename(place)
    watch.look()
    whole = watch.state()
    other = BackupWatch(settings, "another", ())
    other.look()
    another = other.state()

    assert unreadable and unreadable.failed and "cannot be read" in unreadable.failed["what"]
    assert unreadable.newest == made.made_at, "what was known is not forgotten"
    assert whole and (whole.newest, whole.failed) == (made.made_at, None)
    assert another and another.failed and "another lake" in another.failed["what"]
