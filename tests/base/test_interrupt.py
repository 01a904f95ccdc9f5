"""^C where Spark is spoken to ends the process, whatever it is at."""

from __future__ import annotations

import subprocess
import sys

import pytest

FORGETS = """
import os, signal, time, weakref
from twinlake.base.interrupt import leave_at_once

class Object: ...

code = "def {name}(*_):\\n    os.kill(os.getpid(), signal.SIGINT)\\n    time.sleep(0.02)"
found = {{"os": os, "signal": signal, "time": time, "__name__": "py4j.java_gateway"}}
exec(code, found)
leave_at_once()
forgotten = Object()
reference = weakref.ref(forgotten, found["{name}"])
del forgotten
time.sleep(2)
"""


@pytest.mark.parametrize("name", ["_garbage_collect_object", "send_command"])
def test_it_is_not_lost_where_an_object_of_java_s_is_forgotten(name: str) -> None:
    """There Python ignores what is raised, as the second case shows, which has a name that is not known."""
    done = subprocess.run(
        [sys.executable, "-c", FORGETS.format(name=name)], capture_output=True, text=True, timeout=60
    )

    ended = done.returncode == 130 and done.stderr == ""
    assert ended is (name == "_garbage_collect_object"), done.stderr
