"""`twinlake dev` as a process: a file is saved, and what it says then is read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.unit_tests.small_project import CASES, PAGES, VISITS, project_of
from twinlake.cli.app import build_app

FILE, TABLE, CONTRACT = "jobs/tables/pages.test.yaml", "jobs/tables/pages.py", "contracts/visits.yaml"
pytestmark = pytest.mark.usefixtures("environment")
LONG_S = 60.0
"""A loaded machine takes its time; how long it takes is for benchmarks/ to say."""


class Dev:
    """The running command."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self._lines = process, Queue[str]()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def until(self, text: str) -> str:
        """All lines up to the next one with this text."""
        found: list[str] = []
        while True:
            try:
                found.append(self._lines.get(timeout=LONG_S))
            except Empty:
                raise AssertionError(f"{text!r} was not said: {found}") from None
            if text in found[-1]:
                return "\n".join(found)


@contextmanager
def developing(folder: Path) -> Iterator[Dev]:
    command = [sys.executable, "-m", "twinlake", "--project", str(folder), "dev", "pages"]
    environ = {key: value for key, value in os.environ.items() if not key.startswith("TWINLAKE")}
    environ["PYTHONPATH"] = str(folder)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=environ, cwd=folder,
    ) as process:  # fmt: skip
        try:
            yield Dev(process)
        finally:
            process.kill()


def save(file: Path, text: str) -> None:
    """As editors do: a new file takes the place of the old one, which is gone for a moment."""
    beside = file.with_suffix(".swp")
    beside.write_text(text)
    file.unlink()
    beside.rename(file)


@pytest.mark.faults
def test_each_save_is_answered_by_what_is_wrong_or_what_has_changed(tmp_path: Path) -> None:
    project_of(tmp_path, {FILE: CASES})
    with developing(tmp_path) as dev:
        first = dev.until("waiting for changes")
        save(tmp_path / TABLE, PAGES.replace('"page": "page"', '"page": "pgae"'))
        misspelt = dev.until("waiting for changes")
        save(tmp_path / TABLE, PAGES.replace('"page": "page"', '"page": "upper(page)"'))
        changed = dev.until("waiting for changes")
        save(tmp_path / TABLE, "TABLE = (\n")
        broken = dev.until("waiting for changes")
        save(tmp_path / TABLE, PAGES.replace('"page": "page"', '"page": "soundex(page)"'))
        spark = dev.until("waiting for changes")
        save(tmp_path / TABLE, PAGES)
        dev.until("waiting for changes")
        save(tmp_path / CONTRACT, VISITS.replace("name: page", "name: paeg"))
        contract = dev.until("waiting for changes")
        dev.process.send_signal(signal.SIGINT)
        code = dev.process.wait(LONG_S)

    line = next(number for number, text in enumerate(PAGES.splitlines()) if "columns=" in text)
    assert "columns  page string" in first and "tests    1 passed" in first and "pages is right" in first
    assert "not compared: there is no lake here with a release" in first
    assert f"{TABLE}:{line + 1}:" in misspelt and "there is no column pgae; did you mean page?" in misspelt
    assert "since the last save: 2 of 2 rows differ" in changed and "+ page=HOME" in changed
    assert "FAILED  pages: two visits are counted" in changed and "pages is wrong" in changed
    assert f"{TABLE}:1:9: '(' was never closed" in broken
    assert "only Spark can say: soundex(page) (the function soundex is not listed)" in spark
    assert "type f and Enter" in spark and "1 needs Spark" in spark
    assert "pages is right as far as is known without Spark" in spark
    assert "there is no column page; did you mean paeg?" in contract
    assert code == 130


@pytest.mark.faults
def test_a_module_that_is_broken_and_repaired_is_heard_and_so_is_each_line(tmp_path: Path) -> None:
    helper = "jobs/tables/_names.py"
    table = "from ._names import PAGE\n" + PAGES.replace('"page": "page"', '"page": PAGE')
    outside = "from names_of_pages import PAGE as PAGE\n"
    project_of(tmp_path, {helper: outside, TABLE: table, "names_of_pages.py": "PAGE = (\n"})
    with developing(tmp_path) as dev:
        first = dev.until("waiting for changes")
        save(tmp_path / "names_of_pages.py", 'PAGE = "page"\n')
        repaired = dev.until("waiting for changes")
        save(tmp_path / "names_of_pages.py", "PAGE = )\n")
        broken = dev.until("waiting for changes")
        save(tmp_path / "names_of_pages.py", 'PAGE = "upper(page)"\n')
        again = dev.until("waiting for changes")
        assert dev.process.stdin is not None
        dev.process.stdin.write("x\ny\n")
        dev.process.stdin.flush()
        typed = dev.until("waiting for changes") + dev.until("waiting for changes")

    assert "names_of_pages.py:1:" in first and "pages is wrong" in first
    assert "pages is right" in repaired and "pages is wrong" in broken
    assert "since the last save" in again and typed.count("^C ends it") >= 2


def once(folder: Path, table: str = "pages") -> Result:
    return CliRunner().invoke(build_app(), ["--project", str(folder), "dev", table, "--once"])


def test_what_only_spark_can_say_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    project_of(tmp_path, {TABLE: PAGES.replace('"page": "page"', '"page": "soundex(page)"')})

    done = once(tmp_path)

    assert done.exit_code == 3 and "right as far as is known without Spark" in done.output, done.output


def test_a_table_without_tests_is_tried_over_values_of_our_own(tmp_path: Path) -> None:
    project_of(tmp_path, {})

    done = once(tmp_path)

    assert done.exit_code == 0, done.output
    assert "records with values of our own" in done.stdout and "tests    there are none" in done.stdout


@pytest.mark.parametrize(
    ("files", "table", "said"),
    [
        ({}, "pagse", "there is no table 'pagse'; did you mean pages?"),
        ({TABLE: "from . import pages\n\nTABLE = pages.TABLE\n"}, "pages", "pages.py:3:"),
        ({TABLE: "import sys\n\nsys.exit(0)\n"}, "pages", "SystemExit"),
        ({TABLE: ""}, "pages", "pages.py has no TABLE"),
        ({TABLE: PAGES.replace('"seconds": "seconds"', '"seconds": "seconds +* 2"')}, "pages",
         "it is not SQL: `*` follows `+` at `seconds +*`"),
        ({TABLE: PAGES.replace('keys=("page",)', 'keys=("pgae",)')}, "pages",
         "pages.py:8:11: key 'pgae' is not one of its columns; did you mean page?"),
        ({FILE: "cases: {\n"}, "pages", "tests    their file is wrong"),
        ({CONTRACT: VISITS + "more: [\n"}, "pages", "contracts/visits.yaml:"),
        ({FILE: CASES.replace("visits: 2", "vists: 2")}, "pages", "did you mean visits?"),
        ({TABLE: PAGES.replace('("visits"', '("vists"')}, "pages", "input 'vists' is not a topic"),
        ({"jobs/tables/more.sql": "SELECT page, count(*) AS visits FROM pages GROUP BY page\n"}, "more",
         "input 'pages' is a table, and no topic"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, files: dict[str, str], table: str, said: str
) -> None:
    project_of(tmp_path, files)

    done = once(tmp_path, table)

    assert done.exit_code == 1, done.output
    assert said in done.output


def test_a_module_beside_the_tables_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    helper = tmp_path / "names_of_pages.py"
    table = "from names_of_pages import PAGE\n" + PAGES.replace('"page": "page"', '"page": PAGE')
    project_of(tmp_path, {"names_of_pages.py": 'PAGE = "page"\n', TABLE: table})
    assert once(tmp_path).exit_code == 0

    helper.write_text('PAGE = "pgae"\n')

    assert "there is no column pgae" in once(tmp_path).output
