"""What is in the bundle of `twinlake support`, file by file: of tables no row, of settings no secret."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from twinlake.base.as_json import replaced
from twinlake.base.errors import NotFoundError, UsageError
from twinlake.base.files import nearest
from twinlake.base.masking import Masker
from twinlake.base.version import VERSION, commit_of
from twinlake.config.library import CHECKOUT
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of

NEWEST = 500
"""So many jobs and acts, and a tenth as many plans."""
TASKS = 20
"""So many logs of Airflow's tasks, the newest; each has a tenth of what a service's log has."""
_ROWS = frozenset({"differences", "repaired", "answer", "samples", "sample", "speed", "batch", "disputed"})
"""Names under which an answer keeps rows of tables, where it keeps no number there."""
_OF_CERTIFICATE = (
    "id", "job", "kind", "table", "version", "position", "windows", "rows_compared", "differing", "equal",
    "created_at", "covers", "proof",
)  # fmt: skip
"""What there is of a certificate: no row, and no key of one."""
_LONGEST = 2_000

Content = Callable[[], Any]


def parts_of(settings: Settings, log_bytes: int, masker: Masker) -> Iterator[tuple[str, Content]]:
    """Each file by its name; what is in it is found out when it is asked for."""
    yield "settings.json", lambda: _settings(settings)
    yield "doctor.json", lambda: _doctor(settings)
    settings = _usable(settings)
    yield "version.json", lambda: _version(settings)
    yield "machine.json", lambda: _machine(settings)
    yield "packages.txt", _packages
    yield "status.json", lambda: _status(settings)
    yield "disk.json", lambda: _disk(settings)
    yield "processes.json", lambda: _processes(settings)
    yield "jobs.json", lambda: _jobs(settings)
    yield "audit.json", lambda: _acts(settings)
    yield "alarms.json", lambda: _text(settings.run_dir / "alarms.json")
    yield "releases.json", lambda: _releases(settings)
    yield "plans.json", lambda: _plans(settings)
    yield "certificates.json", lambda: _certificates(settings)
    folders = folders_of(settings)
    for file in sorted(one for one in folders.logs.glob("*") if one.is_file()):
        yield f"logs/{file.name}", partial(newest, file, log_bytes, masker.longest)
    tasks = [one for one in folders.of("airflow").glob("logs/**/*.log") if one.is_file()]
    for number, file in enumerate(sorted(tasks, key=_age)[:TASKS], 1):
        name = f"logs/airflow-task-{number:02d}.log"
        yield name, partial(_of_task, file, log_bytes // 10, masker.longest)


def newest(file: Path, many: int, longest: int) -> str:
    """The end of a log, from the beginning of a line; of one without lines nothing that may be the end of a
    secret, `longest` characters."""
    with open(file, "rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(0, size - many))
        found = opened.read(many)
    if size > many:
        first = found.find(b"\n")
        found = found[first + 1 if first >= 0 else 4 * longest :]
    return found.decode("utf-8", "replace")


def _of_task(file: Path, many: int, longest: int) -> str:
    return f"{file}\n{newest(file, many, longest)}"


def without_rows(value: Any) -> Any:
    """An answer without the rows of tables that it may have."""

    def instead(name: str, one: Any) -> str | None:
        return f"{len(one)}, left out" if name in _ROWS and isinstance(one, list | dict) else None

    return replaced(value, instead)


def _usable(settings: Settings) -> Settings:
    """Those that what runs was started with, where somebody has made a mistake since."""
    try:
        _ = settings.values
    except UsageError:
        former = replace(settings, active_file=folders_of(settings).active_settings)
        with suppress(UsageError):
            _ = former.values
            return former
    return settings


def _version(settings: Settings) -> dict[str, Any]:
    from twinlake.lake import formats

    project = settings.in_project
    return {
        "twinlake": VERSION, "python": sys.version,
        "library": {"checkout": str(CHECKOUT) if CHECKOUT else None,
                    "commit": commit_of(CHECKOUT) if CHECKOUT else None},
        "project": {"folder": str(project.root) if project else None,
                    "commit": commit_of(project.root) if project else None},
        "lake": {"at": str(settings.lake), "format": formats.described(settings.lake)},
        "java": _java(),
    }  # fmt: skip


def _java() -> str:
    from twinlake.setup.java import NoJava, find_java

    try:
        home = find_java(os.environ)
    except NoJava as error:
        return str(error)
    done = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60)
    return f"{home}\n{done.stderr or done.stdout}"


def _machine(settings: Settings) -> dict[str, Any]:
    import psutil

    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return {
        "system": platform.platform(), "machine": platform.machine(), "libc": " ".join(platform.libc_ver()),
        "cores": os.cpu_count(), "cores_usable": len(os.sched_getaffinity(0)), "load": os.getloadavg(),
        "memory_bytes": memory.total, "memory_available_bytes": memory.available,
        "swap_bytes": swap.total, "swap_used_bytes": swap.used,
        "limits": {name: _limit(name) for name in ("memory.max", "cpu.max", "pids.max")},
        "disks": [
            {"at": one.mountpoint, "kind": one.fstype, **psutil.disk_usage(one.mountpoint)._asdict()}
            for one in psutil.disk_partitions()
            if os.path.isdir(one.mountpoint)
        ],
        "home": {"at": str(settings.home), **psutil.disk_usage(str(nearest(settings.home)))._asdict()},
        "up_since": datetime.fromtimestamp(psutil.boot_time()).astimezone(),
    }  # fmt: skip


def _limit(name: str) -> str | None:
    """Of the container, where there is one that says so."""
    try:
        return Path("/sys/fs/cgroup", name).read_text().strip()
    except OSError:
        return None


def _packages() -> str:
    found = {f"{one.metadata['Name']}=={one.version}" for one in metadata.distributions()}
    return "\n".join(sorted(found, key=str.lower)) + "\n"


def _settings(settings: Settings) -> dict[str, Any]:
    from twinlake.cli.doctor import shown

    rows = shown(settings.values)
    return {
        "file": str(settings.file), "variables": sorted(settings.overrides),
        "settings": [dict(zip(("name", "value", "from"), row, strict=True)) for row in rows],
    }  # fmt: skip


def _status(settings: Settings) -> Any:
    from twinlake.cli.status import as_told, asked

    return without_rows(as_told(settings, *asked(settings)))


def _disk(settings: Settings) -> dict[str, Any]:
    from twinlake.cli.disk import usage

    return usage(settings).to_json()


def _doctor(settings: Settings) -> dict[str, Any]:
    from twinlake.cli.doctor import as_told, examined

    return as_told(settings, *examined(settings))


def _processes(settings: Settings) -> list[dict[str, Any]]:
    """Of the services of this data directory; no other process is named."""
    import psutil

    from twinlake.services.all import all_parts
    from twinlake.services.supervise import record
    from twinlake.services.supervise.process import marked

    folders, found = folders_of(settings), []
    for name in ("supervisor", *(part.name for part in all_parts())):
        known = record.load(folders, name)
        processes = {one.pid: one for one in marked(folders.mark(name))}
        if known.identity and (leader := known.identity.process()):
            processes[leader.pid] = leader
        if processes or known.state != "stopped":
            found.append(
                {**asdict(known), "processes": [_process(one, psutil) for one in processes.values()]}
            )
    return found


def _process(one: Any, psutil: Any) -> dict[str, Any]:
    try:
        with one.oneshot():
            return {
                "pid": one.pid, "parent": one.ppid(), "command": one.cmdline(), "state": one.status(),
                "began": datetime.fromtimestamp(one.create_time()).astimezone(), "threads": one.num_threads(),
                "memory_bytes": one.memory_info().rss, "cpu_seconds": sum(one.cpu_times()[:2]),
                "open_files": one.num_fds(),
            }  # fmt: skip
    except psutil.Error as error:
        return {"pid": one.pid, "error": str(error)}


def _jobs(settings: Settings) -> list[dict[str, Any]]:
    """What was asked for and how it ended, without its result, which may have rows."""
    from twinlake.lake.catalog.runs import Runs

    _refuse_none(settings)
    return [
        {**asdict(job), "params": _short(job.params), "result": None if job.result is None else "left out"}
        for job in Runs(settings.lake).all()[:NEWEST]
    ]


def _acts(settings: Settings) -> list[dict[str, Any]]:
    from twinlake.lake.catalog.audit_log import read_acts

    _refuse_none(settings)
    return [one.to_json() for one in read_acts(settings.lake)][:NEWEST]


def _releases(settings: Settings) -> list[dict[str, Any]]:
    from twinlake.lake.catalog import release_log

    _refuse_none(settings)
    return [one.to_json() for one in release_log.releases(settings.lake)]


def _plans(settings: Settings) -> list[dict[str, Any]]:
    """What each would change and what it means; neither comparisons nor gates, which have rows."""
    from twinlake.lake.catalog.plans import Plans

    _refuse_none(settings)
    return [one.to_json() for one in Plans(settings.lake).newest_ones(NEWEST // 10)]


def _certificates(settings: Settings) -> dict[str, list[dict[str, Any]]]:
    """The newest of each version and topic: what was compared and found; of a difference only its cause."""
    from twinlake.lake import formats
    from twinlake.lake.catalog.certificates import Certificates
    from twinlake.lake.catalog.version import stored_versions

    _refuse_none(settings)
    formats.refuse_other(settings.lake)
    known = Certificates(settings.lake)
    newest = [known.newest(one.table, one.name) for one in stored_versions(settings.lake)]
    found = [
        {
            **{name: getattr(one, name) for name in _OF_CERTIFICATE},
            "causes": sorted({str(each.get("cause")) for each in one.differences}),
        }
        for one in newest
        if one is not None
    ]
    return {"versions": found, "topics": [one.summary() for one in known.topics.all()]}


def _short(params: Mapping[str, Any]) -> dict[str, Any]:
    """Without definitions, which plans have."""
    return {
        name: "left out" if isinstance(value, dict) or len(str(value)) > _LONGEST else value
        for name, value in params.items()
    }


def _refuse_none(settings: Settings) -> None:
    from twinlake.lake import formats

    if (about := formats.known(settings.lake)) is None:
        raise NotFoundError(f"there is no lake at {settings.lake}", "nothing was started here", "")
    formats.refuse_newer(settings.lake, about)


def _text(file: Path) -> str:
    return file.read_text(errors="replace")


def _age(file: Path) -> float:
    """The newest first."""
    try:
        return -file.stat().st_mtime
    except OSError:
        return 0.0
