"""What is on disk of the parts, and what is read of their logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.parts.folders import folders_of
from infra.supervise.record import remove_state, tail
from jobs.settings import Settings


@pytest.mark.parametrize("long", [1, 500_000])
@pytest.mark.parametrize("lines", [0, 1, 3, 10])
def test_the_last_lines_of_a_log_are_whole(tmp_path: Path, lines: int, long: int) -> None:
    told = [f"{number} {'x' * long}" for number in range(5)]
    (tmp_path / "log").write_text("\n".join(told) + "\n")

    assert tail(tmp_path / "log", lines) == (told[-lines:] if lines else [])


def test_of_a_home_nothing_is_left_that_was_made_in_it(tmp_path: Path) -> None:
    folders = folders_of(Settings(home=tmp_path / "home"))
    folders.make()
    for name in ("sql", "access", "airflow", "registry"):
        (folders.home / name).mkdir(exist_ok=True)

    remove_state(folders)

    assert not folders.home.exists()
