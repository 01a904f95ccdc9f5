"""Airflow: its database and its four components as own children, configured by environment alone."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

from twinlake.base.errors import TwinlakeError
from twinlake.base.files import SECRET, replace_file
from twinlake.base.times import format_moment, utc_now
from twinlake.config.library import IMPORTABLE, LIBRARY
from twinlake.services import console
from twinlake.services.part import Command, Context, Part, get_json
from twinlake.services.ports import HOST

USER = "admin"
POOLS = LIBRARY / "airflow" / "pools.json"
PLUGINS = LIBRARY / "airflow" / "plugins"
PASSWORDS = "passwords.json"
"""What Airflow's auth manager reads at each login."""
_AUTH_MANAGER = "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
_COMPONENTS = ("scheduler", "dag-processor", "triggerer")


def parts() -> tuple[Part, ...]:
    database = Part(
        name="airflow-database", service="airflow", after=("lake", "sql"), prepare=_migrate, tidy=forget_old,
    )  # fmt: skip
    server = Part(
        name="airflow-api-server", service="airflow", needs=(database.name,), ports=("airflow",),
        command=lambda context: _component(context, "api-server"),
        probe=lambda context: _probe(context, "metadatabase"),
    )  # fmt: skip
    return database, server, *(_part(name) for name in _COMPONENTS)


def password(context: Context) -> str:
    """The password of the one user, made once and written where Airflow's auth manager reads it."""
    file = _folder(context) / PASSWORDS
    if not file.exists():
        replace_file(file, json.dumps({USER: secrets.token_urlsafe(18)}), SECRET)
    return str(json.loads(file.read_text())[USER])


def environment(context: Context) -> dict[str, str]:
    """The whole configuration of Airflow; nothing else reads it."""
    folder, url = _folder(context), f"http://{HOST}:{context.ports['airflow']}"
    password(context)
    settings = {
        "CORE__AUTH_MANAGER": _AUTH_MANAGER,
        "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "CORE__DAGS_FOLDER": str(context.settings.project.dags),
        "CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "CORE__EXECUTOR": "LocalExecutor",
        "CORE__FERNET_KEY": "",
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__PLUGINS_FOLDER": str(PLUGINS),
        "CORE__PARALLELISM": "7",  # the slots of the pools in POOLS: tests/dags/test_structure.py
        "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(folder / PASSWORDS),
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "CORE__DEFAULT_TIMEZONE": "utc",
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder / 'airflow.db'}",
        "API__BASE_URL": url,
        "API__HOST": HOST,
        "API__PORT": str(context.ports["airflow"]),
        "API__SECRET_KEY": _secret(folder / "secret_key"),
        "API__WORKERS": "1",
        "API_AUTH__JWT_SECRET": _secret(folder / "jwt_secret"),
        "DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "20",
        "DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "DAG_PROCESSOR__REFRESH_INTERVAL": "15",
        "LOGGING__BASE_LOG_FOLDER": str(folder / "logs"),
        "LOGGING__LOGGING_LEVEL": "INFO",
        "SCHEDULER__ENABLE_HEALTH_CHECK": "False",
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    return {
        "AIRFLOW_HOME": str(folder),
        **{f"AIRFLOW__{name}": value for name, value in settings.items()},
        "NO_COLOR": "1",
        "PYSPARK_PYTHON": sys.executable,
        **IMPORTABLE,
        "PYTHONUNBUFFERED": "1",
        "SPARK_LOCAL_IP": HOST,
        "TWINLAKE_AIRFLOW_SINCE": _once(folder / "since", format_moment(utc_now())),
        "TWINLAKE_CONSOLE_URL": console.url(context),
        "TWINLAKE_HOME": str(context.settings.home),
        "TWINLAKE_PROJECT": str(context.settings.project.root),
    }


def _part(component: str) -> Part:
    key = component.replace("-", "_")
    return Part(
        name=f"airflow-{component}", service="airflow", needs=("airflow-database",),
        command=lambda context: _component(context, component), probe=lambda context: _probe(context, key),
    )  # fmt: skip


def _component(context: Context, component: str) -> Command:
    # Logs are read from the shared folder: no log servers, which would listen on every interface.
    quiet = ("--skip-serve-logs",) if component in ("scheduler", "triggerer") else ()
    return Command(arguments=(_airflow(), component, *quiet), environ=environment(context))


def _migrate(context: Context) -> None:
    pools = POOLS
    stamp, made = _folder(context) / "migrated", f"{version('apache-airflow')} {pools.read_text()}"
    if stamp.exists() and stamp.read_text() == made:
        return
    _run(context, "db", "migrate")
    _run(context, "pools", "import", str(pools))
    replace_file(stamp, made)


def _run(context: Context, *arguments: str) -> None:
    """`airflow ...`; TwinlakeError with its last words where it fails."""
    done = subprocess.run(
        [_airflow(), *arguments], env={**os.environ, **environment(context)}, cwd=_folder(context),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if done.returncode:
        replace_file(context.folders.log("airflow-database"), done.stdout + done.stderr)
        raise TwinlakeError(
            f"`airflow {arguments[0]} {arguments[1]}` failed",
            (done.stderr or done.stdout).strip()[-400:],
            "see `twinlake logs airflow`; `twinlake reset` starts from scratch",
        )


def forget_old(context: Context, keep: timedelta | None = None) -> None:
    """Delete the runs that ended so long ago, what else the database keeps of that time, and their logs.

    96 runs of `batch` a day would fill both for ever. TwinlakeError in Airflow's words where it refuses.
    """
    if keep is None:
        keep = timedelta(days=context.settings.values.limits.airflow_keep_days)
    before = utc_now() - keep
    cleaned = ("--clean-before-timestamp", format_moment(before), "--skip-archive", "--yes")
    _run(context, "db", "clean", *cleaned, "--error-on-cleanup-failure")
    logs = _folder(context) / "logs"
    old = []
    for path in sorted(logs.rglob("*"), reverse=True):  # what is in a folder comes before the folder
        with suppress(OSError):  # somebody else has deleted it
            if path.lstat().st_mtime < before.timestamp():  # a new folder is of a task that begins
                old.append(path)
    for path in old:
        with suppress(OSError):  # a folder that is not empty
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def _probe(context: Context, component: str) -> str:
    url = f"http://{HOST}:{context.ports['airflow']}"
    health = get_json(f"{url}/api/v2/monitor/health")
    if health.get(component, {}).get("status") != "healthy":
        raise ConnectionError(f"Airflow's {component} is not healthy: {health.get(component)}")
    return url


def _folder(context: Context) -> Path:
    return context.folders.private("airflow")


def _secret(file: Path) -> str:
    return _once(file, secrets.token_hex(48))


def _once(file: Path, text: str) -> str:
    """What the file says; this from now on where there is none."""
    if not file.exists():
        replace_file(file, text, SECRET)
    return file.read_text()


def _airflow() -> str:
    return str(Path(sys.executable).parent / "airflow")
