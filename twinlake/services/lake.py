"""The lake server: the one writer, ready when it says so itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx

from twinlake.base.errors import TwinlakeError
from twinlake.services import metrics
from twinlake.services.part import Command, Context, Part, get_json
from twinlake.services.ports import HOST


def parts() -> tuple[Part, ...]:
    return (
        Part(
            name="lake", service="lake", needs=("broker", "registry", "topics"), ports=("lake", metrics.LAKE),
            prepare=make_local_lake, command=_command, probe=_probe, error=_error, grace_s=40.0,
            note=lambda context: metrics.shown(context.services.lake_metrics_url),
        ),
    )  # fmt: skip


def spark_environment(context: Context) -> dict[str, str]:
    """What every Spark process gets: its Java, its Python, loopback only."""
    return {
        "JAVA_HOME": str(context.java_home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "PYTHONUNBUFFERED": "1",
        "TWINLAKE_HOME": str(context.settings.home),
        "TWINLAKE_PROJECT": str(context.settings.project.root),
    }


def make_local_lake(context: Context) -> None:
    """The folder of a lake on this machine; one in a store is made by who writes it."""
    if isinstance(context.settings.lake, Path):
        context.settings.lake.mkdir(mode=0o755, exist_ok=True)


def _command(context: Context) -> Command:
    return Command(
        arguments=(
            sys.executable, "-m", "twinlake.server",
            "--home", str(context.settings.home), "--port", str(context.ports["lake"]),
            "--project", str(context.settings.project.root), "--jars", str(context.settings.jars),
            "--settings", str(context.settings.file), *metrics.words(context, metrics.LAKE),
        ),
        environ={**spark_environment(context), **overrides_of(context)},
    )  # fmt: skip


def overrides_of(context: Context) -> dict[str, str]:
    """What the environment said of settings, without the passwords: those are in services.json."""
    overrides = context.settings.overrides
    return {name: value for name, value in overrides.items() if not name.endswith("_PASSWORD")}


def _error(context: Context) -> TwinlakeError | None:
    """Why the running server is about to end, as it says itself; the probe tells of one away."""
    try:
        error = _health(context)["error"]
    except (httpx.HTTPError, OSError, KeyError, ValueError):
        return None
    return TwinlakeError(error["what"], error["why"], error["remedy"]) if error else None


def _health(context: Context) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {context.services.api_token}"}
    found: dict[str, Any] = get_json(f"{context.services.api_url}/health", headers)
    return found


def _probe(context: Context) -> str:
    health = _health(context)
    if not health.get("ready"):
        raise ConnectionError("it answers, and is not ready")
    return context.services.api_url
