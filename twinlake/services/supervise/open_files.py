"""How many files a process of ours may have open at once: what the shell allows, if that is enough."""

from __future__ import annotations

import resource

from twinlake.base.errors import UsageError

NEEDED = 1_024
"""The SQL server's JVM has 414 open when idle, the lake server's 351, and JDBC serves 500 connections."""


def ensure() -> None:
    """Lets this process, and all that it starts, open as many as are needed; UsageError where it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < NEEDED:
        raise UsageError(
            "too few files may be open at once",
            f"this shell lets a process open {hard:,} (`ulimit -Hn`), and {NEEDED:,} are needed, because the "
            "JVMs hold about 400 each and every connection one more",
            "`ulimit -n 4096` raises it where you may; else an administrator raises nofile in "
            "/etc/security/limits.conf, LimitNOFILE of the systemd unit, or --ulimit nofile of the container",
        )
    if soft != resource.RLIM_INFINITY and soft < NEEDED:
        resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED, hard))
