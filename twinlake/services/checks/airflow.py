"""What is asked of an external Airflow: there, well, and of a version for the DAGs?"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.times import Clock
from twinlake.config.settings import Settings
from twinlake.services.checks.finding import Finding, refuse_clock, tried

SERVICE = "airflow"
OLDEST = 3
_PARTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")


def findings(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Every check; the first one decides whether there are others."""
    configured = settings.values.airflow
    reached = tried(SERVICE, configured.url, lambda: health(configured.url, configured.ca_file))
    yield reached
    if reached.error:
        return
    yield tried(SERVICE, "its version", lambda: _refuse_old(configured.url, configured.ca_file))

    def its_clock() -> str:
        return refuse_clock("Airflow", _clock(configured.url, configured.ca_file), clock)

    yield tried(SERVICE, "its clock", its_clock)


def health(url: str, ca_file: Path | None) -> str:
    """Which of its parts are healthy; UnreachableError unless all are that it tells of."""
    found, _ = _ask(f"{url}/api/v2/monitor/health", ca_file)
    statuses = {name: (found.get(name) or {}).get("status") for name in _PARTS}
    # it says nothing of a component that does not run on its own
    sick = [f"{name}: {status}" for name, status in statuses.items() if status not in ("healthy", None)]
    if statuses["metadatabase"] is None:
        sick = ["what answers is no Airflow"]
    if sick:
        raise UnreachableError(
            f"the Airflow at {url} is not well", ", ".join(sick), "fix it, or name another in twinlake.toml"
        )
    return ", ".join(f"{name} healthy" for name, status in statuses.items() if status)


def _refuse_old(url: str, ca_file: Path | None) -> str:
    found, _ = _ask(f"{url}/api/v2/version", ca_file)
    version = str(found.get("version", ""))
    if not version.split(".")[0].isdigit() or int(version.split(".")[0]) < OLDEST:
        raise UsageError(
            f"the Airflow at {url} is of version {version or 'unknown'}",
            f"the DAGs are written for Airflow {OLDEST}", "upgrade it, or name another in twinlake.toml",
        )  # fmt: skip
    return version


def _clock(url: str, ca_file: Path | None) -> datetime | None:
    return _ask(f"{url}/api/v2/monitor/health", ca_file)[1]


def _ask(url: str, ca_file: Path | None) -> tuple[dict[str, Any], datetime | None]:
    import httpx  # here: every command knows this module's list

    trust: Any = ssl.create_default_context(cafile=ca_file) if ca_file else True
    try:
        answer = httpx.get(url, verify=trust, timeout=10, trust_env=False).raise_for_status()
        found = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        said = str(error).partition("\n")[0] or type(error).__name__  # httpx adds a link to a lesson on HTTP
        raise UnreachableError(
            f"{url} does not answer as Airflow does",
            said if isinstance(error, httpx.HTTPError) else f"the answer is not valid JSON: {said}",
            "start it, or fix url in [airflow] of twinlake.toml",
        ) from error  # fmt: skip
    if not isinstance(found, dict):
        found = {}
    said = answer.headers.get("date")
    return found, parsedate_to_datetime(said) if said else None
