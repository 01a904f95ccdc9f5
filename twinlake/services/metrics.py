"""Where lake server, SQL server and console serve their metrics, and the login of who scrapes them."""

from __future__ import annotations

from pathlib import Path

from twinlake.base.errors import UsageError
from twinlake.base.files import replace_file
from twinlake.base.passwords import hashed
from twinlake.config.sections import Metrics
from twinlake.config.settings import Services
from twinlake.metrics import options
from twinlake.services.folders import Folders
from twinlake.services.part import Context
from twinlake.services.ports import HOST

USER = "metrics"
LAKE, SQL, CONSOLE = "lake_metrics", "sql_metrics", "console_metrics"
"""The names of their ports."""


def url(context: Context, port: str) -> str:
    """Empty where `[metrics]` switches them off."""
    given = context.settings.values.metrics
    if not given.is_on:
        return ""
    host = HOST if given.host in ("0.0.0.0", "::") else given.host
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{context.ports[port]}/metrics"


def words(context: Context, port: str) -> tuple[str, ...]:
    """Of the command line of the server that has this port."""
    given, found = context.settings.values.metrics, tuple[str, ...]()
    if given.is_on:
        found = options.words(given.host, context.ports[port], password_file(context.folders))
    if given.otlp_url:
        found += options.words_to_send(given.otlp_url, given.otlp_headers_file, given.otlp_seconds)
    return found


def refuse_without_sdk(given: Metrics) -> None:
    """UsageError where metrics are to be sent and OpenTelemetry's packages are not installed."""
    if not given.otlp_url:
        return
    try:
        import twinlake.metrics.otlp  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("twinlake"):
            raise
        raise UsageError(
            "metrics cannot be sent by OTLP", f"{error.name} is not installed",
            "pip install 'twinlake[otel]'; or leave out otlp_url in [metrics] of twinlake.toml",
        ) from error  # fmt: skip


def hand_over(services: Services, folders: Folders) -> None:
    """The hash of the password, in a file that all of them may read and the SQL server may not write."""
    password_file(folders).parent.mkdir(mode=0o755, exist_ok=True)
    replace_file(password_file(folders), hashed(services.metrics_user, services.metrics_password))


def password_file(folders: Folders) -> Path:
    return folders.of("access") / "metrics"


def shown(url: str) -> str:
    """For `twinlake status`, beside what else there is to say of the server."""
    return f"metrics {url}" if url else ""
