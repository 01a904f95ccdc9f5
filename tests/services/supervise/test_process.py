import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from twinlake.base.waiting import wait_for
from twinlake.services.supervise.process import Identity, end, identity_of, in_session, marked, start

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
time.sleep(300)
"""


def _start(tmp_path: Path, code: str, mark: str) -> Identity:
    process = start(
        [sys.executable, "-c", code], environ=os.environ, folder=tmp_path, log=tmp_path / "log", mark=mark
    )
    found = identity_of(process.pid)
    assert found is not None
    return found


def test_a_pid_given_to_someone_else_is_not_taken_for_ours() -> None:
    me = identity_of(os.getpid())
    assert me is not None

    assert me.alive
    assert not Identity(pid=me.pid, begun=f"{me.begun}0").alive


def test_ending_a_part_ends_what_ignores_the_request_and_what_left_the_group(tmp_path: Path) -> None:
    mark = f"stubborn@{tmp_path}"
    identity = _start(tmp_path, STUBBORN, mark)
    wait_for("both processes", lambda: len(marked(mark)) == 2 or None, 20)

    end(identity, mark, grace_s=0.3)

    assert marked(mark) == []
    assert not identity.alive


FORGETFUL = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], env={})
time.sleep(300)
"""


def test_a_child_whose_environment_is_gone_is_found_in_the_session_of_its_dead_leader(tmp_path: Path) -> None:
    mark = f"forgetful@{tmp_path}"
    identity = _start(tmp_path, FORGETFUL, mark)
    wait_for("both processes", lambda: len(in_session(identity)) == 2 or None, 20)
    os.kill(identity.pid, signal.SIGKILL)

    end(identity, mark, 0.1)

    assert in_session(identity) == []


def test_ending_one_part_leaves_another_alone(tmp_path: Path) -> None:
    one = _start(tmp_path, "import time; time.sleep(300)", f"one@{tmp_path}")
    other = _start(tmp_path, "import time; time.sleep(300)", f"other@{tmp_path}")

    end(one, f"one@{tmp_path}", grace_s=5)

    assert (one.alive, other.alive) == (False, True)
    end(other, f"other@{tmp_path}", grace_s=5)


def test_a_wall_clock_that_is_set_makes_nobody_a_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    me = identity_of(os.getpid())
    assert me is not None
    began, booted = psutil.Process().create_time(), psutil._pslinux.boot_time()

    monkeypatch.setattr(psutil._pslinux, "boot_time", lambda: booted + 3600)

    assert psutil.Process().create_time() != began, "the clock was to be set"
    assert me.alive and identity_of(os.getpid()) == me
