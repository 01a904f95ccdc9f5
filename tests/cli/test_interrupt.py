"""Ctrl-C ends a command without a traceback, also while it is imported, or Spark starts."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.processes import has_ended
from tests.project import PROJECT
from tests.unit_tests.small_project import CASES, project_of
from twinlake.base.waiting import wait_for


@pytest.mark.parametrize("imported", ["click", "httpx"])
def test_ctrl_c_in_the_first_second_says_nothing_of_python(imported: str) -> None:
    asked = [sys.executable, "-X", "importtime", "-m", "twinlake", "logs", "lake", "--follow"]
    process = subprocess.Popen(
        asked, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert any(line.rpartition("|")[2].strip() == imported for line in process.stderr)

    process.send_signal(signal.SIGINT)

    assert "Traceback" not in process.stderr.read()
    assert process.wait(20) == -signal.SIGINT


@pytest.mark.faults
@pytest.mark.parametrize("seconds", [0, 2, 4, 6])
def test_ctrl_c_while_spark_starts_or_works_leaves_no_jvm_and_says_nothing_of_python(
    tmp_path: Path, seconds: float
) -> None:
    _, _, case = CASES.partition("cases:\n")
    many = "".join(case.replace("two visits", f"two visits of {n}") for n in range(100))
    project_of(tmp_path, {"jobs/tables/pages.test.yaml": f"cases:\n{many}"})  # a minute of work and more
    asked = [sys.executable, "-m", "twinlake", "--project", str(tmp_path), "test", "--full"]
    process = subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = psutil.Process(process.pid)
    (jvm,) = wait_for("the JVM", lambda: found.children() or None, 60)
    time.sleep(seconds)  # what it does then is of no concern

    process.send_signal(signal.SIGINT)

    said = process.communicate(timeout=60)[0]  # until the JVM, which has its output too, has ended
    assert "Traceback" not in said and process.returncode == 128 + signal.SIGINT, said
    assert has_ended(jvm)
