"""The console: the pages in a browser. It asks the lake server and the SQL server, and opens no file of the
lake."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import httpx

from twinlake.services import metrics
from twinlake.services.lake import overrides_of
from twinlake.services.part import Command, Context, Part, get_json
from twinlake.services.ports import HOST
from twinlake.services.sql import users_file

USER = "admin"


def parts() -> tuple[Part, ...]:
    return (
        Part(
            name="console", service="console", ports=("console", metrics.CONSOLE), command=_command,
            probe=_probe, note=lambda context: metrics.shown(context.services.console_metrics_url),
        ),
    )  # fmt: skip


def url(context: Context) -> str:
    """What a person types into a browser."""
    return _at(context, context.settings.values.console.name or _reached_at(context))


def _at(context: Context, host: str) -> str:
    scheme = "https" if context.settings.values.console.certificate_file else "http"
    return f"{scheme}://{host}:{context.ports['console']}"


def _reached_at(context: Context) -> str:
    """Where this machine reaches it."""
    listen = context.settings.values.console.listen
    address = {"0.0.0.0": HOST, "::": "::1"}.get(listen, listen)
    return f"[{address}]" if ":" in address else address


def _command(context: Context) -> Command:
    given = context.settings.values.console
    names = ("--name", given.name) if given.name else ()
    certificate: tuple[str, ...] = ()
    if given.certificate_file and given.key_file:
        certificate = ("--certificate", str(given.certificate_file), "--key", str(given.key_file))
    return Command(
        arguments=(
            sys.executable, "-m", "twinlake.console", "--home", str(context.settings.home),
            "--project", str(context.settings.project.root), "--settings", str(context.settings.file),
            "--users", str(users_file(context.folders)), "--listen", given.listen,
            "--port", str(context.ports["console"]), *names, *certificate,
            *metrics.words(context, metrics.CONSOLE),
        ),
        environ={
            "PYTHONUNBUFFERED": "1", "TWINLAKE_HOME": str(context.settings.home), **overrides_of(context),
        },
    )  # fmt: skip


def _probe(context: Context) -> str:
    certificate = context.settings.values.console.certificate_file
    at = f"{_at(context, _reached_at(context))}/health"
    health = get_json(at) if certificate is None else _by_certificate(at, certificate)
    if not health.get("ready"):
        raise ConnectionError("it answers, and is not ready")
    return context.services.console_url


def _by_certificate(at: str, certificate: Path) -> dict[str, bool]:
    """What it answers, if it shows this very certificate: its name may be one that only others resolve."""
    trust = ssl.create_default_context(cafile=certificate)
    trust.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trust.check_hostname = False
    found: dict[str, bool] = httpx.get(at, verify=trust, trust_env=False, timeout=5).raise_for_status().json()
    return found
