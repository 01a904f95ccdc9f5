"""The SQL server: the readers' endpoint, kept from the lake's files and all secrets where root can do so."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import httpx

from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.files import SECRET, replace_file
from twinlake.config import users
from twinlake.config.library import CHECKOUT, LIBRARY
from twinlake.config.settings import Services
from twinlake.services import metrics
from twinlake.services.confine import NOBODY
from twinlake.services.folders import Folders
from twinlake.services.lake import make_local_lake, spark_environment
from twinlake.services.part import Command, Context, Part, get_json

CHAIN, KEY = "certificate.pem", "key.pem"
"""Of its certificate, in its own folder."""
USER = "analyst"
READER = "nobody"
"""Who the SQL server is for a lake's store that asks for names; it needs to read there, and nothing more."""


def parts() -> tuple[Part, ...]:
    return (
        Part(
            name="sql", service="sql",
            ports=("sql", "jdbc", "flight", "sql_tls", "jdbc_tls", "flight_tls", metrics.SQL),
            prepare=_prepare, command=_command, probe=_probe, note=_note, error=not_following,
        ),
    )  # fmt: skip


def _note(context: Context) -> str:
    said = (protection(context), metrics.shown(context.services.sql_metrics_url), *elsewhere(context))
    return "; ".join(filter(None, said))


def elsewhere(context: Context) -> tuple[str, ...]:
    """In words, where clients on other machines reach it; nothing where it lets in none."""
    name, ports = context.settings.values.sql.name, context.ports
    if not context.settings.values.sql.listen:
        return ()
    return (
        f"for other machines https://{name}:{ports['sql_tls']}, "
        f"jdbc:hive2://{name}:{ports['jdbc_tls']}/serve;ssl=true and "
        f"grpc+tls://{name}:{ports['flight_tls']}",
    )


def namespaces() -> tuple[str, ...]:
    """The words that give a child a file system view of its own, () where this process may not."""
    private = ("unshare", "--mount", "--propagation", "private")
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        return ()
    words = private if is_root() else (*private, "--user", "--map-root-user")
    tried = subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    return words if tried.returncode == 0 else ()


def is_root() -> bool:
    return os.geteuid() == 0


def protection(context: Context) -> str:
    """In words, what keeps the running SQL server from writing the lake; it is asked itself."""
    try:
        status = get_json(f"{context.services.sql_url}/status")["protection"]
    except (httpx.HTTPError, OSError, KeyError, ValueError):
        return ""
    holds = [
        _WRITES_LAKE[status["writes_lake"]],
        "sees no secrets" if not status["sees_secrets"] else "WARNING: can read services.json",
        "has no capabilities" if not status["has_capabilities"] else "WARNING: has capabilities",
    ]
    return f"user {status['user']}, {', '.join(holds)}"


_WRITES_LAKE = {
    False: "cannot write the lake", True: "WARNING: can write the lake",
    None: f"its account {READER} of the lake's store decides whether it can write the lake",
}  # fmt: skip


def not_following(context: Context) -> TwinlakeError | None:
    """Why the running SQL server is about to end, cannot follow the lake, or hears nothing of its server, as
    it says itself; the probe tells of one away."""
    try:
        status = get_json(f"{context.services.sql_url}/status")
        broken, why, missing = status.get("broken"), status["error"], status.get("no_report")
    except (httpx.HTTPError, OSError, KeyError, ValueError):
        return None
    if broken:
        return TwinlakeError(broken["what"], broken["why"], broken["remedy"])
    if why is None and missing:
        return TwinlakeError(
            "readers are warned that their tables may be old", missing["why"],
            "see whether the lake server runs (`twinlake status`), and what it says (`twinlake logs lake`)",
        )  # fmt: skip
    if why is None:
        return None
    return TwinlakeError(
        "the SQL server cannot follow the lake, readers may see what is old", why,
        "fix what it names: it is tried again every second; `twinlake logs sql` has the whole error",
    )  # fmt: skip


def hand_over(services: Services, folders: Folders) -> None:
    """The hashes of the users' passwords, in a file that the SQL server may read and not write: the reader's,
    and with a new file that of the console's first user."""
    first = {services.console_user: services.console_password}
    users.ensure(users_file(folders), {**dict([services.reader]), **first}, reader=USER)


def users_file(folders: Folders) -> Path:
    """Who may sign in to the console and the SQL server."""
    return folders.of("access") / "users"


def nobody_let_in(folders: Folders) -> UsageError | None:
    """Why the console and the SQL server let nobody in, where the users cannot be read."""
    try:
        users.refuse_damaged(users_file(folders))
    except UsageError as error:
        return error
    return None


def _prepare(context: Context) -> None:
    if not (context.in_container or namespaces() or unconfined_file(context.folders).exists()):
        raise unconfined_error(context.folders)
    make_local_lake(context)
    scratch = context.folders.of("sql")
    scratch.mkdir(exist_ok=True)
    _hand_over_certificate(context, scratch)
    if is_root():
        for folder, _, files in os.walk(scratch):
            for path in (folder, *(os.path.join(folder, file) for file in files)):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        scratch.chmod(0o700)
        if not (context.in_container or namespaces()):  # it comes to the lake by the home itself
            home = context.settings.home
            os.chown(home, -1, NOBODY)
            home.chmod(stat.S_IMODE(home.stat().st_mode) | stat.S_IXGRP)


def _hand_over_certificate(context: Context, scratch: Path) -> None:
    """Copies: the process is another user, and sees no other folder."""
    given = context.settings.values.sql
    for source, name in ((given.certificate_file, CHAIN), (given.key_file, KEY)):
        (scratch / name).unlink(missing_ok=True)
        if source:
            replace_file(scratch / name, source.read_bytes(), SECRET)


def unconfined_error(folders: Folders) -> UsageError:
    return UsageError(
        "the SQL server was not started",
        "this system gives it no file system view of its own (unshare --mount), "
        "so it could write the lake and read services.json",
        f"run `twinlake up` as root, allow user namespaces, or accept it: touch {unconfined_file(folders)}",
    )


def unconfined_file(folders: Folders) -> Path:
    """Where it exists, the operator has accepted a SQL server that nothing but its own rules hold back."""
    return folders.home / "accept-unconfined-sql"


def _command(context: Context) -> Command:
    lake, home, scratch = context.settings.lake, str(context.settings.home), str(context.folders.of("sql"))
    access = users_file(context.folders)
    limits = context.settings.values.limits  # it sees no settings itself
    server = (
        sys.executable, "-m", "twinlake.reading", "--home", home, "--port", str(context.ports["sql"]),
        "--jdbc-port", str(context.ports["jdbc"]), "--flight-port", str(context.ports["flight"]),
        "--scratch", scratch, "--password-file", str(access),
        "--query-seconds", str(limits.query_seconds), "--jdbc-seconds", str(limits.jdbc_seconds),
        "--memory", limits.sql_memory, *_doors(context, scratch),
        "--export-seconds", str(limits.export_seconds), "--export-gigabytes", str(limits.export_gigabytes),
        "--lake", context.settings.values.lake.uri, "--jars", str(context.settings.jars),
        *metrics.words(context, metrics.SQL),
    )  # fmt: skip
    environ = {
        **spark_environment(context), "TMPDIR": scratch, "HOME": scratch, "HADOOP_USER_NAME": READER,
    }  # fmt: skip
    if context.in_container:
        return Command(arguments=server, environ=environ)
    become = ("--become", str(NOBODY)) if is_root() else ()
    drop = (sys.executable, "-m", "twinlake.services.confine", *become)
    if not namespaces():
        return Command(arguments=(*drop, "--", *server) if is_root() else server, environ=environ)
    view = (
        "--home", home, "--write", scratch, *(("--read", str(lake)) if isinstance(lake, Path) else ()),
        "--read", str(access.parent), "--read", str(context.settings.jars),
        "--read", str(CHECKOUT or LIBRARY), "--read", sys.prefix,
        "--read", str(context.java_home), "--read", sys.base_prefix,
    )  # fmt: skip
    return Command(arguments=(*namespaces(), *drop, *view, "--", *server), environ=environ)


def _doors(context: Context, scratch: str) -> tuple[str, ...]:
    given, ports = context.settings.values.sql, context.ports
    if not given.listen:
        return ()
    return (
        "--listen", given.listen, "--name", given.name, "--tls-port", str(ports["sql_tls"]),
        "--jdbc-tls-port", str(ports["jdbc_tls"]), "--flight-tls-port", str(ports["flight_tls"]),
        "--certificate", f"{scratch}/{CHAIN}", "--key", f"{scratch}/{KEY}",
    )  # fmt: skip


def _probe(context: Context) -> str:
    status = get_json(f"{context.services.sql_url}/status")
    if not status.get("ready"):
        raise ConnectionError("it answers, and is not ready")
    return context.services.jdbc_url
