"""What is on disk of the parts, and what is read of their logs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from twinlake.base.waiting import wait_for
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.supervise import record
from twinlake.services.supervise.process import start
from twinlake.services.supervise.record import remove_state, tail


@pytest.mark.parametrize("long", [1, 500_000])
@pytest.mark.parametrize("lines", [0, 1, 3, 10])
def test_the_last_lines_of_a_log_are_whole(tmp_path: Path, lines: int, long: int) -> None:
    told = [f"{number} {'x' * long}" for number in range(5)]
    (tmp_path / "log").write_text("\n".join(told) + "\n")

    assert tail(tmp_path / "log", lines) == (told[-lines:] if lines else [])


WRITES = """
import itertools, os, time
for number in itertools.count():
    os.write(1, f"{number} {'x' * 90}\\n".encode())  # a line at once: print makes four writes of it
    time.sleep(0.0005)
    if os.path.exists("end"):
        break
"""


def test_a_log_is_shortened_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "_LOG_LONGEST_BYTES", 100_000)
    log, older = tmp_path / "part.log", tmp_path / "part.log.1"
    writer = start(
        [sys.executable, "-c", WRITES], environ=dict(os.environ), folder=tmp_path, log=log, mark="writer@test"
    )
    wait_for("a long log", lambda: True if log.exists() and log.stat().st_size > 100_000 else None, 60)

    record.shorten(log)

    first = older.read_text().splitlines()
    wait_for("more lines", lambda: log.stat().st_size > 1000 or None, 60)
    (tmp_path / "end").touch()
    assert writer.wait(60) == 0
    rest = log.read_text().splitlines()
    assert [int(line.split()[0]) for line in first] == list(range(len(first)))
    numbers = [int(line.split()[0]) for line in rest]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) and numbers[0] - len(first) < 200
    record.shorten(log.with_name("none.log"))


def test_of_a_home_nothing_is_left_that_was_made_in_it(tmp_path: Path) -> None:
    folders = folders_of(Settings(home=tmp_path / "home"))
    folders.make()
    for name in ("sql", "access", "airflow", "registry"):
        (folders.home / name).mkdir(exist_ok=True)

    remove_state(folders)

    assert not folders.home.exists()
