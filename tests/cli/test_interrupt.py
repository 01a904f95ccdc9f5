"""Ctrl-C while the command line is still being imported ends it without a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.project import PROJECT


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
