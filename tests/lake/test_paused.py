"""What is paused holds over restarts, whatever becomes of its file."""

from __future__ import annotations

from pathlib import Path

from twinlake.lake.catalog.paused import Paused, Pauses
from twinlake.lake.catalog.version import unknown

SINCE = "2026-01-31T12:00:00Z"
TOPIC = Paused(kind="topic", name="orders", since=SINCE, by="anna", reason="the source sends rubbish")
TABLE = Paused(kind="table", name="orders", since=SINCE, by="ben", versions=("aaaa-1",))


def test_what_is_paused_is_known_after_a_restart_until_it_is_resumed(tmp_path: Path) -> None:
    pauses = Pauses(tmp_path)
    pauses.put(TABLE)
    pauses.put(TOPIC)

    again = Pauses(tmp_path)
    pauses.drop("table", "orders")
    pauses.drop("table", "orders")

    assert again.all() == [TABLE, TOPIC] and again.of("changelog", "orders") is None
    assert Pauses(tmp_path).all() == pauses.all() == [TOPIC]
    assert TOPIC.words == f"paused since {SINCE}, by anna: the source sends rubbish"


def test_only_the_versions_that_were_there_stand_still(tmp_path: Path) -> None:
    pauses = Pauses(tmp_path)
    pauses.put(TABLE)

    assert pauses.of_version(unknown("orders", "aaaa-1")) == TABLE
    assert pauses.of_version(unknown("orders", "bbbb-2")) is None
    assert pauses.of_version(unknown("sales", "aaaa-1")) is None


def test_of_a_file_that_is_torn_the_name_still_says_what_stands_still(tmp_path: Path) -> None:
    Pauses(tmp_path).put(TABLE)
    (tmp_path / "paused" / "table" / "orders.json").write_text('{"by": "be')

    (found,) = Pauses(tmp_path).all()

    assert (found.kind, found.name, found.versions) == ("table", "orders", ())
    assert "orders.json says no more why" in found.words
    Pauses(tmp_path).drop("table", "orders")
    assert Pauses(tmp_path).all() == []
