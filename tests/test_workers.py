"""Two workers draw alike and begin with the folder that takes longest; where the seconds come from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests import seconds, workers
from tests.conftest import THROUGH_ALL
from tests.project import PROJECT

DRAWN = "def test_it(seed, record_property):\n    record_property('seed', seed)\n"
CONFTEST = "from tests.conftest import pytest_addoption, pytest_configure, pytest_configure_node, seed\n"


def test_every_worker_draws_with_the_same_seed(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(DRAWN)
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "each", f"--junitxml={report}", "-q"]
    config = ["-c", str(PROJECT / "pyproject.toml"), "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run([*command, *config], cwd=PROJECT, capture_output=True, text=True)

    found = [
        one.get("value") for one in ElementTree.parse(report).iter("property") if one.get("name") == "seed"
    ]
    assert len(found) == 2 and len(set(found)) == 1, done.stdout + done.stderr


def test_the_longest_folder_is_begun_first_and_keeps_its_order() -> None:
    tests = ["tests/test_a.py::t", "tests/b/test_b.py::t2", "tests/b/test_b.py::t1", "tests/c/d/test_c.py::t"]
    first = workers.order(tests, {"tests/c/d/test_c.py::t": 3.0, "tests/test_a.py::t": 1.0})

    assert sorted(tests, key=first) == [tests[3], tests[0], tests[1], tests[2]]


def test_the_seconds_are_those_of_the_report(tmp_path: Path) -> None:
    report, file = tmp_path / "report.xml", tmp_path / "seconds.txt"
    report.write_text(
        "<testsuites><testsuite>"
        "<testcase classname='tests.ingest.test_late' name='test_it[a.b]' time='2.04'/>"
        "<testcase classname='tests.spark.test_session' name='test_long' time='30'/>"
        "<testcase classname='tests.spark.test_session' name='test_short' time='0.1'/>"
        "<testcase classname='tests.spark.test_session' name='test_left' time='5'><skipped/></testcase>"
        "</testsuite></testsuites>"
    )
    file.write_text(seconds.text(report, "2030-01-01"))

    assert file.read_text().splitlines()[0].endswith("(2030-01-01); all: 3 tests in 32 s.")
    assert seconds.read(file) == {
        "tests/spark/test_session.py::test_long": 30.0,
        "tests/ingest/test_late.py::test_it[a.b]": 2.0,
    }


def test_the_way_through_everything_exists() -> None:
    file, _, name = THROUGH_ALL.partition("::")

    assert f"def {name}(" in (PROJECT / file).read_text()


def test_every_listed_test_is_of_a_file_that_exists() -> None:
    gone = {test for test in seconds.read() if not (PROJECT / test.partition("::")[0]).exists()}

    assert gone == set(), "python -m tests.seconds report.xml, or delete their lines"
