"""`twinlake upgrade` on real services: from the small lake of every format that the tests keep, and from an
older version that runs; rows, records and the way back, with a `kill -9` of the command in between."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.alarms.platform import copy_of_ours
from tests.processes import of_home
from tests.project import PROJECT, sequence
from tests.small_lake.small import HERE, Shown, shown, unpack
from twinlake.base.breakpoints import Point
from twinlake.base.version import VERSION
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.topics.produce import produce

pytestmark = pytest.mark.timeout(2_400)
FORMATS = sorted(int(re.sub(r"\D", "", file.name)) for file in HERE.glob("format_*.tar.xz"))
OLDER = "0.0.9"
TOPIC = "shop_customers"
RECORDS = 60
KILLED = """import sys
from pathlib import Path
from twinlake.base import breakpoints
breakpoints.honour(Path(sys.argv.pop(1)))
from twinlake.__main__ import main
main()
"""


DIFFERS = """
from twinlake.base.errors import DifferenceError
from twinlake.cli.upgrading import Here
Here.wrong = lambda self, before: DifferenceError("it is planted")
from twinlake.__main__ import main
main()
"""


class Machine:
    """A data directory, a project beside it, and the commands of several versions."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home, self.project, self.settings = home, project, Settings(home=home)
        home.mkdir()
        (home / "twinlake.toml").write_text("[limits]\nstart_seconds = 1800\n")  # of both versions

    def __call__(self, *words: str, code: Path = PROJECT) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "twinlake", *words], capture_output=True, text=True, timeout=900,
            env=self._environ(code), cwd=self.project,
        )  # fmt: skip

    def do(self, *words: str, code: Path = PROJECT) -> str:
        done = self(*words, code=code)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """The command inside another program."""
        return subprocess.run(
            [sys.executable, "-P", "-c", program, *words], env=self._environ(PROJECT), cwd=self.project,
            capture_output=True, text=True, timeout=900,
        )  # fmt: skip

    def killed_at(self, point: Point, *words: str) -> None:
        """`kill -9` of the command alone, where it is then."""
        folder = self.home.parent / "breakpoints"
        folder.mkdir(exist_ok=True)
        (folder / point).write_text("")
        running = subprocess.Popen(
            [sys.executable, "-P", "-c", KILLED, str(folder), *words], env=self._environ(PROJECT),
            cwd=self.project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        reached = folder / f"{point}.reached"
        try:
            wait_for(f"{point}", lambda: (reached.exists() or running.poll() is not None) or None, 900)
            assert reached.exists(), running.returncode
        finally:
            running.kill()
            running.wait()

    def until_read(self, topic: str, records: int) -> None:
        """Every record that Kafka has is in the log, once, and in the tables that are made of it."""

        def is_read() -> bool | None:
            status = self.status()
            of = next(one for one in status["topics"] if one["name"] == topic)
            tables = [one for one in status["versions"] if topic in one["position"]]
            is_all = of["records"] >= records and of["lag_records"] == 0
            return (is_all and all(one["position"][topic] >= of["batch"] for one in tables)) or None

        wait_for("the records to be read", is_read, 300, every_s=1)
        assert records_of(self.status(), topic) == records

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("status", "--json").stdout)
        return found

    @property
    def format(self) -> int:
        return of_lake(self.home / "lake")

    def _environ(self, code: Path) -> dict[str, str]:
        return {**os.environ, "TWINLAKE_HOME": str(self.home), "PYTHONPATH": str(code)}


def of_small_lake(folder: Path, number: int) -> Machine:
    """A machine with the small lake of that format, which nobody has opened since it was made."""
    made = Machine(folder / "home", folder / "project")
    unpack(number, folder)
    (folder / "lake").rename(made.home / "lake")
    (made.project / "twinlake.toml").write_text("[project]\n")
    return made


def produce_to(machine: Machine, topic: str) -> None:
    """Some records, of which none is like another."""
    source = sequence("shop", topic, seed=5, run="upgrade", schema_id=0)
    produce(
        source, login=machine.settings.services().kafka("producer"), topic=topic, count=RECORDS, rate=None,
        stop=threading.Event(), report=lambda sent: None,
    )  # fmt: skip


def of_lake(lake: Path) -> int:
    found = formats.known(lake)
    assert found
    return found.format


def records_of(status: dict[str, Any], topic: str) -> int:
    return int(next(one for one in status["topics"] if one["name"] == topic)["records"])


def content(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def rows(spark: SparkSession, lake: Path) -> Shown:
    found: Shown = json.loads(json.dumps(shown(spark, lake)))
    return found


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A checkout of an older version: its number, and one format less."""
    folder = tmp_path / "older"
    shutil.copytree(PROJECT / "twinlake", folder / "twinlake", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", folder)
    (folder / ".jars").symlink_to(PROJECT / ".jars")
    version = folder / "twinlake" / "base" / "version.py"
    version.write_text(version.read_text().replace(f'VERSION = "{VERSION}"', f'VERSION = "{OLDER}"'))
    steps = folder / "twinlake" / "lake" / "formats.py"
    text, cut = steps.read_text(), re.compile(r"\n    Step\([^\n]* (change=\w+),[^\n]*\),\n\)\n")
    (change,) = cut.findall(text)
    begin, _, end = cut.sub("\n)\n", text).rpartition("change=_nothing")
    steps.write_text(f"{begin}{change}{end}")  # its code is today's, which needs what the last step makes
    return folder


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    made: list[Machine] = []
    yield made
    for one in made:
        one("down")
        assert of_home(one.home) == []


@pytest.mark.parametrize("number", FORMATS)
def test_the_small_lake_of_every_format_is_taken_on_and_given_back_and_loses_no_record(
    spark: SparkSession, tmp_path: Path, older: Path, machines: list[Machine], number: int
) -> None:
    machine = of_small_lake(tmp_path, number)
    machines.append(machine)
    lake, before = machine.home / "lake", content(machine.home / "lake")
    seen = json.loads((tmp_path / "shown.json").read_text())["shown"]

    machine.killed_at(Point.UPGRADE_STARTED, "upgrade", "--only", "lake")
    refused = machine("up")
    assert refused.returncode == 2 and "`twinlake upgrade --back` goes back" in refused.stderr
    assert "an upgrade of" in machine("status").stdout
    machine.do("upgrade")
    assert machine.format == len(formats.STEPS)
    assert content(machine.home / "lake.before") == before
    assert rows(spark, lake) == seen

    records = records_of(machine.status(), TOPIC) + RECORDS
    produce_to(machine, TOPIC)
    machine.do("topic", "accept", TOPIC)  # the small lake has read another Kafka
    machine.until_read(TOPIC, records)
    of_new = rows(spark, lake)
    assert of_new != seen

    machine.do("upgrade", "--back")
    assert content(lake) == before and machine.format == number
    assert machine("up").returncode == 2  # by the version that it was taken back from
    machine.do("up", "--only", "lake", code=older)
    assert machine.format == len(formats.STEPS) - 1
    machine.do("topic", "accept", TOPIC, code=older)
    machine.until_read(TOPIC, records)
    assert rows(spark, machine.home / "lake.after") == of_new
    machine.do("down", code=older)
    formats.acquire(lake)  # for this reader
    assert rows(spark, lake) == of_new


def test_an_older_version_that_runs_is_upgraded_and_started_again_on_the_way_back(
    tmp_path: Path, older: Path, machines: list[Machine]
) -> None:
    machine = Machine(tmp_path / "home", copy_of_ours(tmp_path / "project"))
    machines.append(machine)
    machine.do("up", "--only", "lake", code=older)
    machine.do("produce", "orders", "--count", "200")
    machine.until_read("orders", 200)
    release = machine.status()["release"]

    failed = machine.run(DIFFERS, "upgrade")
    assert failed.returncode == 1 and "failed, and everything is back as it was" in failed.stderr
    assert "why: it is planted" in failed.stderr and f"Twinlake {OLDER} runs again" in failed.stderr
    assert machine.format == len(formats.STEPS) - 1
    assert of_lake(machine.home / "lake.after") == len(formats.STEPS)  # it had been taken on
    machine.until_read("orders", 200)
    machine.do("upgrade", "--done", "--yes")

    made = json.loads(machine.do("upgrade", "--reason", "the new one", "--json"))
    assert (made["step"], made["from"], made["to"]) == ("upgraded", OLDER, VERSION)
    assert {"broker", "registry", "lake"} <= {*made["services"]}
    assert machine.format == len(formats.STEPS)
    status = machine.status()
    assert (status["release"], records_of(status, "orders")) == (release, 200)
    act = json.loads(machine.do("audit", "--act", "upgrade", "--json"))[0]
    assert (act["what"]["from"], act["what"]["to"], act["why"]) == (OLDER, VERSION, "the new one")
    machine.do("produce", "orders", "--count", "300")
    machine.until_read("orders", 500)
    assert machine("up", code=older).returncode != 0  # of its own it starts on no newer lake

    machine.killed_at(Point.UPGRADE_MOVED, "upgrade", "--back")
    assert not (machine.home / "lake").exists()
    back = json.loads(machine.do("upgrade", "--back", "--json"))

    assert (back["step"], back["started"]) == ("returned", True)
    assert machine.format == len(formats.STEPS) - 1 and machine.status()["release"] == release
    machine.until_read("orders", 500)  # what the new version had taken, once more from Kafka
    freed = json.loads(machine.do("upgrade", "--done", "--yes", "--json"))
    assert freed["freed_bytes"] > 0 and not (machine.home / "lake.after").exists()
