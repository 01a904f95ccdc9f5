"""Which commit of a table was the last at some position, among those that are kept."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from twinlake.lake.delta import kept_commits
from twinlake.lake.delta.delta import commit_file

NOW = 1_000_000.0


def place(metadata: dict[str, Any]) -> int | None:
    return metadata.get("at")


def write(table: Path, version: int, told: dict[str, Any], age_s: float = 0) -> None:
    folder = table / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    file = commit_file(folder, version)
    file.write_text(json.dumps({"commitInfo": {"userMetadata": json.dumps(told)}}) + "\n")
    os.utime(file, (NOW - age_s, NOW - age_s))


def test_it_is_the_newest_commit_up_to_the_position_whatever_came_between(tmp_path: Path, seed: int) -> None:
    draw, at, placed = random.Random(seed), 0, []
    first = draw.randint(0, 30)  # older ones were cleaned up
    for version in range(first, first + 60):
        moves = draw.random() < 0.6
        at += draw.randint(1, 3) if moves else 0
        write(tmp_path, version, {"at": at} if moves else {"kind": "rebuild"})
        placed.append((version, at if any([moves, placed and placed[-1][1]]) else None))

    for wanted in range(at + 3):
        found = kept_commits.last_at(tmp_path, place, wanted)
        before = [(version, one) for version, one in placed if one is not None and one <= wanted]
        expected = before[-1] if before else None
        assert (found and (found.version, place(found.metadata))) == expected, wanted


def test_a_table_without_commits_has_none(tmp_path: Path) -> None:
    assert kept_commits.last_at(tmp_path, place, 3) is None


@pytest.mark.parametrize(("age_s", "readable"), [(0, True), (6_000, True), (7_000, False)])
def test_a_version_can_be_read_for_a_while_after_the_next_one_came(
    tmp_path: Path, age_s: float, readable: bool
) -> None:
    write(tmp_path, 0, {"at": 1}, age_s=90_000)
    write(tmp_path, 1, {"at": 2}, age_s)

    assert kept_commits.readable(tmp_path, 0, NOW) is readable
    assert kept_commits.readable(tmp_path, 1, NOW)  # the newest, however old


def test_a_version_that_never_was_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, 0, {"at": 1})

    assert not kept_commits.readable(tmp_path, 5, NOW)
