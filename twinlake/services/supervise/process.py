"""Processes by identity: started in a group of their own, recognised later, ended for certain; and how many
files they may have open.

A process is ours when its pid *and* its start time are the recorded ones; a pid alone may have been given to
another process. Everything a service starts inherits its mark (an environment variable), which finds the
children that left the session; the session finds those whose environment can no longer be read, because they
wrote their title over it (Airflow's workers do).
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from twinlake.base.errors import TimedOutError, UsageError
from twinlake.base.waiting import wait_for
from twinlake.config.library import IMPORTABLE

MARK = "TWINLAKE_PART"
PASSED_ON = (
    "HADOOP_CONF_DIR", "HADOOP_USER_NAME", "HOME", "JAVA_HOME", "KUBECONFIG", "LANG", "LC_ALL", "LOGNAME",
    "PATH", "TMPDIR", "USER", "YARN_CONF_DIR",
)  # fmt: skip
"""All that a part sees of the shell that started it: no token that lies in an environment reaches it."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """One process, for as long as the machine runs."""

    pid: int
    begun: str
    """When, by a clock that nobody sets: psutil's own start time moves when the wall clock is set."""

    def process(self) -> psutil.Process | None:
        """The living process, None when it has ended or its pid belongs to someone else."""
        try:
            process = psutil.Process(self.pid)
            if _begun(self.pid) != self.begun:
                return None
            return None if process.status() == psutil.STATUS_ZOMBIE else process
        except psutil.NoSuchProcess:
            return None

    @property
    def alive(self) -> bool:
        return self.process() is not None


def passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what is nobody's business; the code is the checkout's that runs now."""
    kept = {name: environ[name] for name in PASSED_ON if name in environ}
    return {**kept, **IMPORTABLE}


def identity_of(pid: int) -> Identity | None:
    """The identity of a pid now, None when there is no such process."""
    try:
        return Identity(pid=pid, begun=_begun(pid))
    except psutil.NoSuchProcess:
        return None


def _begun(pid: int) -> str:
    """NoSuchProcess where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        return f"{_BOOT.read_text().strip()} {stat.rpartition(')')[2].split()[19]}"  # ticks since the start
    except OSError:
        return str(psutil.Process(pid).create_time())  # it has ended, or this is no Linux


def start(
    command: Sequence[str], *, environ: Mapping[str, str], folder: Path, log: Path, mark: str
) -> subprocess.Popen[bytes]:
    """Starts a process in a session of its own, its output appended to `log`."""
    with open(log, "ab") as out:
        return subprocess.Popen(
            list(command), env={**environ, MARK: mark}, cwd=folder, stdin=subprocess.DEVNULL,
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip


def marked(mark: str) -> list[psutil.Process]:
    """All living processes that carry the mark, the caller itself excepted."""
    found = []
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


def in_session(leader: Identity) -> list[psutil.Process]:
    """All living processes of the session that this one leads, or led until it ended."""
    try:
        if _begun(leader.pid) != leader.begun:
            return []  # the pid is another process's now, and so would its session be
    except psutil.NoSuchProcess:
        pass
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader.pid and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (OSError, psutil.NoSuchProcess):
            continue
    return [process for process in found if process.pid != os.getpid()]


def end(identity: Identity | None, mark: str, grace_s: float) -> None:
    """Asks the process to end, waits, and ends by force what is left of it and of its children."""
    leader = identity.process() if identity else None
    if leader is not None:
        _signal(leader, signal.SIGTERM)
        _wait_gone([leader], grace_s)
    end_marked(mark, identity)


def end_marked(mark: str, leader: Identity | None = None) -> None:
    """Ends by force every process with the mark, or of the leader's session; returns when none is left."""
    until = time.monotonic() + 10
    while (left := marked(mark) + (in_session(leader) if leader else [])) and time.monotonic() < until:
        for process in left:
            _signal(process, signal.SIGKILL)
        _wait_gone(left, 2)


def _wait_gone(processes: Sequence[psutil.Process], limit_s: float) -> None:
    """Returns when all have ended, or when the time is over; a zombie has ended."""
    with suppress(TimedOutError):
        wait_for(
            f"{len(processes)} processes to end",
            lambda: None if any(_living(process) for process in processes) else True,
            limit_s, every_s=0.05,
        )  # fmt: skip


def _living(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        pass


OPEN_FILES = 1_024
"""The SQL server's JVM has 414 open when idle, the lake server's 351, and JDBC serves 500 connections."""


def ensure_open_files() -> None:
    """Lets this process, and all that it starts, open as many as are needed; UsageError where it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < OPEN_FILES:
        raise UsageError(
            "too few files may be open at once",
            f"this shell lets a process open {hard:,} (`ulimit -Hn`), and {OPEN_FILES:,} are needed: "
            "JVMs hold about 400 each and every connection one more",
            "`ulimit -n 4096` raises it where you may; else an administrator raises nofile in "
            "/etc/security/limits.conf, LimitNOFILE of the systemd unit, or --ulimit nofile of the container",
        )
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))
