"""Python and its JVM end together. A program stands here for a JVM that does not notice its Python's end."""

from __future__ import annotations

import json
import subprocess
import sys

import psutil

from tests.processes import has_ended
from tests.project import PROJECT
from twinlake.base.waiting import wait_for
from twinlake.spark.jvm import EXIT_CODE

SERVER = """
import subprocess, sys, time
from twinlake.base import service_log
from twinlake.spark import jvm
service_log.start()
below = subprocess.Popen(["sleep", "300"])
jvm.end_together(below)
print(below.pid, flush=True)
sys.stdin.read()
"""


def start() -> tuple[subprocess.Popen[str], psutil.Process]:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], cwd=PROJECT, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdout
    return server, psutil.Process(int(server.stdout.readline()))


def test_python_exits_with_one_line_when_its_jvm_dies() -> None:
    server, below = start()

    below.kill()

    assert server.wait(10) == EXIT_CODE
    _, said = server.communicate()
    (line,) = said.splitlines()
    told = json.loads(line)
    assert (told["level"], told["event"], told["why"]) == (
        "critical", "the JVM has ended, and this process with it", "killed by signal 9",
    )  # fmt: skip
    assert "supervisor" in told["remedy"]


def test_a_jvm_whose_python_was_killed_ends_at_once_even_a_frozen_one() -> None:
    server, below = start()
    below.suspend()

    server.kill()
    server.wait()

    wait_for("the JVM to end", lambda: has_ended(below) or None, 5, every_s=0.02)


def test_a_python_that_ends_in_order_leaves_its_jvm_to_end_by_itself() -> None:
    server, below = start()
    (guard,) = (child for child in psutil.Process(server.pid).children() if child.pid != below.pid)

    assert server.stdin
    server.stdin.close()

    assert server.wait(10) == 0
    wait_for("the guard to end", lambda: has_ended(guard) or None, 5, every_s=0.02)
    assert not has_ended(below)
    below.kill()
