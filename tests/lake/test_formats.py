"""The lake's format: what is opened, what is taken on, what is refused, and that a kill loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unopened import make_live, unopened
from tests.world import Killed
from twinlake.base.errors import FormatError
from twinlake.base.version import VERSION
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.formats import STEPS, Known, Step
from twinlake.lake.storage import store

ID = "0123456789abcdef"


def written(lake: Path, text: str) -> Path:
    lake.mkdir(parents=True, exist_ok=True)
    (lake / "lake.json").write_text(text)
    return lake


def _renamed(lake: Path) -> None:
    """A step of two writes for these tests: every name in capitals in `names.json`, then no `names.txt`."""
    old = lake / "names.txt"
    if store.exists(old):
        store.replace(lake / "names.json", json.dumps(store.read_text(old).upper().split()))
        store.delete(old)


THREE = (STEPS[0], Step(name="names are JSON", change=_renamed, needs="0.7.0"),
         Step(name="nothing more", change=lambda lake: None, needs="0.8.0"))  # fmt: skip


def test_a_new_lake_has_the_newest_format_and_keeps_its_id(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    assert formats.known(lake) is None
    formats.refuse_other(lake)

    made = formats.acquire(lake)

    assert formats.known(lake) == Known(id=made, format=len(STEPS), needs=STEPS[-1].needs)
    assert formats.acquire(lake) == made
    formats.refuse_other(lake)


def test_a_lake_without_a_number_is_taken_on_by_its_server_and_keeps_its_id(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    make_live(lake, {"sales": "a-1"})
    written(lake, json.dumps({"id": ID}))
    before = release_log.releases(lake)
    with pytest.raises(FormatError, match=f"has format 0, and this Twinlake reads format {len(STEPS)}"):
        formats.refuse_other(lake)

    assert unopened(tmp_path).lake_id == ID

    assert formats.known(lake) == Known(id=ID, format=len(STEPS), needs=STEPS[-1].needs)
    assert release_log.releases(lake) == before
    formats.refuse_other(lake)


@pytest.mark.parametrize("opened", [formats.acquire, formats.refuse_other, formats.described])
def test_a_newer_lake_is_refused_with_the_version_that_it_needs_and_stays_as_it_is(
    tmp_path: Path, opened: Callable[[Path], object]
) -> None:
    number = len(STEPS) + 1
    lake = written(tmp_path, json.dumps({"id": ID, "format": number, "needs": "7.1.0", "more": 1}))
    before = (lake / "lake.json").read_bytes()

    with pytest.raises(FormatError) as refused:
        opened(lake)

    assert refused.value.what == (
        f"the lake {lake} has format {number}, and this Twinlake {VERSION} knows up to {len(STEPS)}"
    )
    assert refused.value.remedy.startswith("use Twinlake 7.1.0 or newer")
    assert (lake / "lake.json").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is not valid JSON"),
        ('{"id": "0123', "it is not valid JSON"),
        ("[]", "it holds no id"),
        ('{"format": 1}', "it holds no id"),
        ('{"id": "", "format": 1}', "it holds no id"),
        ('{"id": "x", "format": true}', "True is not the number of a format"),
        ('{"id": "x", "format": "1"}', "'1' is not the number of a format"),
        ('{"id": "x", "format": 1.0}', "1.0 is not the number of a format"),
        ('{"id": "x", "format": -1}', "-1 is not the number of a format"),
        ('{"id": "x", "format": null}', "None is not the number of a format"),
    ],
)
@pytest.mark.parametrize("opened", [formats.acquire, formats.refuse_other])
def test_a_format_that_nobody_can_tell_is_refused_with_the_way_out(
    tmp_path: Path, text: str, why: str, opened: Callable[[Path], object]
) -> None:
    lake = written(tmp_path, text)

    with pytest.raises(FormatError) as refused:
        opened(lake)

    assert refused.value.what == f"the format of the lake {lake} is not known"
    assert refused.value.why == f"{lake / 'lake.json'} says it, and {why}"
    assert "put that file back from a backup" in refused.value.remedy
    assert (lake / "lake.json").read_text() == text


@pytest.mark.parametrize("opened", [formats.acquire, formats.refuse_other])
def test_a_lake_whose_file_is_gone_is_not_taken_for_a_new_one(
    tmp_path: Path, opened: Callable[[Path], object]
) -> None:
    make_live(tmp_path, {"sales": "a-1"})
    (tmp_path / "lake.json").unlink()

    with pytest.raises(FormatError, match="is not known"):
        opened(tmp_path)

    assert not (tmp_path / "lake.json").exists()


WRITES = ("replace", "delete")


def test_empty_folders_are_not_taken_for_a_lake_whose_file_is_gone(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for name in formats.CONTENT:
        (lake / name).mkdir(parents=True)
    assert formats.known(lake) is None

    made = formats.acquire(lake)

    assert formats.known(lake) == Known(id=made, format=len(STEPS), needs=STEPS[-1].needs)


@pytest.mark.parametrize("written_before", range(5))
def test_steps_that_are_killed_before_any_of_their_writes_are_done_again_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_before: int
) -> None:
    lake = written(tmp_path, json.dumps({"id": ID}))
    (lake / "names.txt").write_text("anna berta")
    left = [written_before]
    with monkeypatch.context() as killing:
        for name in WRITES:
            killing.setattr(store, name, _counted(getattr(store, name), left))

        with pytest.raises(Killed):
            formats.acquire(lake, THREE)

    found = formats.known(lake)
    assert found is not None and found.format == (0, 1, 1, 1, 2)[written_before]
    with pytest.raises(FormatError, match="this Twinlake reads format 3"):
        formats.refuse_other(lake, THREE)  # half a step is nothing to read
    assert formats.acquire(lake, THREE) == ID
    assert formats.known(lake) == Known(id=ID, format=3, needs="0.8.0")
    assert json.loads((lake / "names.json").read_text()) == ["ANNA", "BERTA"]
    assert not (lake / "names.txt").exists()


def _counted(write: Callable[..., None], left: list[int]) -> Callable[..., None]:
    """The same so many times, then the process ends in its place."""

    def counted(*given: object) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        write(*given)

    return counted


def test_the_next_step_says_what_it_is_before_the_lake_server_makes_it(tmp_path: Path) -> None:
    new, old = tmp_path / "new", written(tmp_path / "old", json.dumps({"id": ID, "format": 1}))

    assert formats.described(new, THREE) == "there is none yet; it will have format 3"
    assert formats.described(old, THREE) == (
        "format 1; at its next start the lake server will: names are JSON, nothing more"
    )
    assert formats.described(replaced(old), THREE) == "format 3"


def replaced(lake: Path) -> Path:
    found = formats.known(lake)
    assert found
    replace(found, format=3).save(lake)
    return lake


def test_no_version_of_twinlake_is_named_that_does_not_exist_yet() -> None:
    assert all(_numbers(step.needs) <= _numbers(VERSION) for step in STEPS)


def _numbers(version: str) -> list[int]:
    return [*map(int, version.split("."))]
