"""The SQL server: the readers' door, kept from the lake's files and all secrets where root can do so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache

from infra.parts.confine import NOBODY
from infra.parts.http import get_json
from infra.parts.lake import spark_environment
from infra.parts.part import Command, Context, Part


def parts() -> tuple[Part, ...]:
    return (
        Part(
            name="sql", service="sql", ports=("sql", "jdbc"),
            prepare=_prepare, command=_command, probe=_probe, note=lambda context: protection(),
        ),
    )  # fmt: skip


@cache
def can_confine() -> bool:
    """Whether this process may give a child a view of the file system, and a user, of its own."""
    if os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("setpriv")):
        return False
    tried = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "setpriv", "--reuid", str(NOBODY),
         "--regid", str(NOBODY), "--clear-groups", "--no-new-privs", "true"],
        capture_output=True,
    )  # fmt: skip
    return tried.returncode == 0


def protection() -> str:
    """In words, what keeps the SQL server from writing the lake."""
    if can_confine():
        return "runs as nobody, sees the lake read-only and no secrets"
    if os.geteuid() == 0:
        return "WARNING: runs as root beside the lake, mount namespaces are not available here"
    return "runs as the same user as the lake server"


def _prepare(context: Context) -> None:
    context.settings.lake.mkdir(mode=0o755, exist_ok=True)
    scratch = context.folders.of("sql")
    scratch.mkdir(exist_ok=True)
    if can_confine():
        for folder, _, files in os.walk(scratch):
            for path in (folder, *(os.path.join(folder, file) for file in files)):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        scratch.chmod(0o700)


def _command(context: Context) -> Command:
    home, scratch = str(context.settings.home), str(context.folders.of("sql"))
    server = (
        sys.executable, "-m", "jobs.reading.sql_server", "--home", home, "--port", str(context.ports["sql"]),
        "--jdbc-port", str(context.ports["jdbc"]), "--scratch", scratch,
    )  # fmt: skip
    environ = {**spark_environment(context), "TMPDIR": scratch}
    if not can_confine():
        return Command(arguments=server, environ=environ)
    confine = (
        "unshare", "--mount", "--propagation", "private", sys.executable, "-m", "infra.parts.confine",
        "--home", home, "--read", str(context.settings.lake), "--write", scratch,
        "--read", str(context.settings.project), "--read", str(context.java_home), "--read", sys.base_prefix,
        "--",
    )  # fmt: skip
    return Command(
        arguments=(*confine, *server), environ={**environ, "HOME": scratch, "HADOOP_USER_NAME": "nobody"}
    )


def _probe(context: Context) -> str:
    status = get_json(f"{context.services.sql_url}/status")
    if not status.get("ready"):
        raise ConnectionError(f"it answers, but is not ready: {status}")
    return context.services.jdbc_url
