"""The README's tour: every command as it is written there, the edit included, on real services."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.project import PROJECT
from twinlake.base.waiting import wait_for

LONGEST_S = 600
MADE_HERE = (".venv", ".jars", ".twinlake*", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis",
             "__pycache__")  # fmt: skip
DIFFERS = {".venv/bin/twinlake diff": 1}
"""The exit codes that the tour announces; of all others it is 0."""
AGAIN = re.compile(r"again, until the topic has ([\d,]+) records and no lag is above 0")
"""What the tour waits for, in its own words."""
TOTAL = "SELECT sum(orders) AS orders FROM serve.sales_per_region"


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A field that the reader adds to a definition."""

    file: str
    field: str


@dataclass(frozen=True, kw_only=True)
class Command:
    """One line of a block, and what is said beside it."""

    line: str
    comment: str


def tour(text: str) -> Iterator[Edit | Command]:
    """The chapter's commands and edits, in order."""
    chapter = re.search(r"\n## A five-minute tour\n(.*?)\n## ", text, re.DOTALL)
    assert chapter
    for found in re.finditer(r"```\n(.*?)```|In `(\S+)` add [^`]*: `([^`]+)`", chapter[1], re.DOTALL):
        block, file, field = found.groups()
        if file:
            yield Edit(file=file, field=field)
        for line in (block or "").splitlines():
            command, _, comment = line.partition(" # ")
            yield Command(line=command.strip(), comment=comment.strip())


@dataclass
class Checkout:
    """A copy of the project, with what was installed for it."""

    folder: Path

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("TWINLAKE")}
        environ |= {"PYTHONPATH": str(self.folder)}  # the installed command would find the project's own code
        return subprocess.run(
            line, shell=True, cwd=self.folder, env=environ, capture_output=True, text=True, timeout=LONGEST_S
        )

    def json(self, line: str) -> Any:
        return json.loads(self.run(f".venv/bin/twinlake {line} --json").stdout)

    def caught_up(self, records: int) -> bool | None:
        """Whether the topic has so many records and no lag is above 0."""
        status = self.json("status")
        if not status["topics"] or not status["versions"]:  # the lake server is starting
            return None
        (topic,) = status["topics"]
        lags = [one["lag_records"] for one in (topic, *status["versions"])]
        return True if topic["records"] == records and not any(lags) else None

    def orders(self) -> int:
        (row,) = self.json(f'query "{TOTAL}"')
        return int(row["orders"])

    def edit(self, edit: Edit) -> None:
        """The field, as the first one of the definition."""
        file = self.folder / edit.file
        text, count = re.subn(r"(TABLE = \w+\(\n)", rf"\1    {edit.field}\n", file.read_text())
        assert count == 1
        file.write_text(text)


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    folder = tmp_path / "twinlake"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns(*MADE_HERE), symlinks=True)
    for installed in (".venv", ".jars"):
        (folder / installed).symlink_to(PROJECT / installed)
    made = Checkout(folder)
    yield made
    made.run("make down")
    assert not [
        one for one in psutil.process_iter(["cmdline"]) if str(folder) in " ".join(one.info["cmdline"] or ())
    ]


def test_the_tour_as_it_is_written(checkout: Checkout) -> None:
    said: dict[str, str] = {}
    totals: list[int] = []
    waited: list[bool] = []
    for step in tour((PROJECT / "README.md").read_text()):
        if isinstance(step, Edit):
            checkout.edit(step)
            totals.append(checkout.orders())
            continue
        if again := AGAIN.fullmatch(step.comment):
            records = int(again[1].replace(",", ""))
            caught_up = partial(checkout.caught_up, records)
            waited.append(wait_for(f"{records} records", caught_up, LONGEST_S, every_s=2))
        done = checkout.run(step.line)
        assert done.returncode == DIFFERS.get(step.line, 0), (step.line, done.stdout, done.stderr)
        assert "Traceback" not in done.stdout + done.stderr
        said[step.line] = done.stdout
        if step.line.endswith(("promote", "rollback")):
            totals.append(checkout.orders())

    before, promoted, rolled_back = totals
    assert 0 < promoted < before == rolled_back
    assert "where" in said[".venv/bin/twinlake plan"]
    assert any(line.startswith("kill -9 ") for line in said)
    assert "equal" in said[".venv/bin/twinlake verify sales_per_region"]
    assert waited == [True, True] and len(said) >= 15, "the chapter was not understood"
