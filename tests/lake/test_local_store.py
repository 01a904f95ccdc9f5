"""The store on a disk of this machine, and what keeps a lake out of one that is unfit."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.lake.stores import RULES
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.location import Location
from twinlake.lake.storage import store
from twinlake.lake.storage.fit import check_store
from twinlake.lake.storage.local_store import LocalStore


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_disk_of_this_machine(rule: Callable[[Location], None], tmp_path: Path) -> None:
    rule(tmp_path / "lake")


def now() -> datetime:
    return datetime.now(UTC)


def test_a_store_that_a_lake_may_be_in_is_left_as_it_was(tmp_path: Path) -> None:
    check_store(tmp_path / "lake", now())

    assert store.tree(tmp_path / "lake") == {}


def test_a_store_that_publishes_a_name_twice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overwriting(self: LocalStore, file: Path, content: bytes) -> bool:
        file.write_bytes(content)
        return True

    monkeypatch.setattr(LocalStore, "put_if_absent", overwriting)

    with pytest.raises(UsageError, match="the lake cannot be in") as told:
        check_store(tmp_path, now())
    assert "one name twice" in told.value.why and store.tree(tmp_path) == {}


@pytest.mark.parametrize(("apart_s", "words"), [(600, "behind"), (-600, "ahead")])
def test_a_store_whose_clock_is_minutes_away_is_refused(tmp_path: Path, apart_s: int, words: str) -> None:
    with pytest.raises(UsageError, match=rf"(599|600|601) s {words}"):
        check_store(tmp_path, now() + timedelta(seconds=apart_s))


def test_a_file_system_without_links_is_refused_with_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(source: object, target: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", unsupported)

    with pytest.raises(UnreachableError, match="cannot be written") as told:
        check_store(tmp_path, now())
    assert "hard links" in told.value.remedy and store.tree(tmp_path) == {}
