"""A file is replaced as a whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from twinlake.base.errors import FullDiskError, UsageError
from twinlake.base.files import SECRET, full_disk, replace_file, write_new


def test_the_content_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "new" / "facts.json"

    replace_file(file, "one")
    replace_file(file, b"two")

    assert file.read_bytes() == b"two"
    assert [path.name for path in file.parent.iterdir()] == ["facts.json"]


def test_of_new_files_none_is_left_where_one_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "contracts").write_text("a file where a folder should be")

    with pytest.raises(UsageError, match=r"revenue\.yaml cannot be written"):
        write_new({tmp_path / "revenue.py": "", tmp_path / "contracts" / "revenue.yaml": ""})

    assert [one.name for one in tmp_path.iterdir()] == ["contracts"]


def test_a_secret_is_never_readable_by_others_whatever_was_there(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("old")

    replace_file(file, "new", SECRET)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_write_that_fails_leaves_the_old_content_and_no_second_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "facts.json"
    replace_file(file, "old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(FullDiskError, match=f"the disk of {tmp_path} is full"):
            replace_file(file, "new")

    assert file.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_is_known_by_the_system_s_words_whoever_passes_them_on(tmp_path: Path) -> None:
    def told(words: str) -> RuntimeError:
        passed_on = RuntimeError("the job failed")
        passed_on.__cause__ = ValueError(words)
        return passed_on

    found = full_disk(tmp_path / "not" / "there", error=told("java.io.IOException: No space left on device"))

    assert found is not None
    assert found.what == f"the disk of {tmp_path} is full" and "bytes are free" in found.why
    assert full_disk(tmp_path, error=told("Permission denied")) is None
    assert full_disk(tmp_path) is None
