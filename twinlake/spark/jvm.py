"""The JVM below a Spark process: the two end together, whichever dies first.

By itself neither does: a Python whose JVM was killed lives on and hangs in py4j, and a JVM whose Python was
killed ends in its own time, writing for seconds while the lake's lock is free, or never when it is frozen.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import threading

import structlog

from twinlake.base.errors import TwinlakeError

EXIT_CODE = 70
"""The process's own when its JVM ended or serves no more (EX_SOFTWARE): the supervisor starts it again."""

# End of file says that Python died: the kernel closes the pipe then, whatever ended it. A line says that it
# ends in order; the JVM then ends by itself, as its own input closes, and removes its temporary files.
_GUARD = 'trap "" HUP INT TERM; read -r line || kill -9 "$0"'

journal = structlog.get_logger(__name__)


def end_together(jvm: subprocess.Popen[bytes]) -> None:
    """From here on this process exits with EXIT_CODE when its JVM ends, and the JVM ends when it does."""
    guard = subprocess.Popen(["/bin/sh", "-c", _GUARD, str(jvm.pid)], stdin=subprocess.PIPE)
    atexit.register(guard.communicate, b"in order\n")
    threading.Thread(target=_follow, args=(jvm, guard), name="jvm", daemon=True).start()


def give_up(error: TwinlakeError) -> None:
    """Ends this process, and its JVM with it, at once: only new ones put it right."""
    journal.critical(error.what, why=error.why, remedy=error.remedy, exit_code=EXIT_CODE)
    os._exit(EXIT_CODE)


def _follow(jvm: subprocess.Popen[bytes], guard: subprocess.Popen[bytes]) -> None:
    code = jvm.wait()
    journal.critical(
        "the JVM has ended, and this process with it",
        why=f"killed by signal {-code}" if code < 0 else f"exit code {code}",
        remedy="the supervisor starts it again; signal 9 may be the kernel's, out of memory: see `dmesg`",
        exit_code=EXIT_CODE,
    )
    guard.kill()  # the pid that it knows may be another process's from now on
    os._exit(EXIT_CODE)  # no way in order: threads that ask the JVM hang in py4j
