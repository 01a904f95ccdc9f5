"""What a part is: one process (or one preparing step) to keep running, what it may know, and how it is asked
over HTTP on loopback: no proxy, a short patience, one client for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from twinlake.base.errors import TwinlakeError
from twinlake.config.settings import Services, Settings
from twinlake.services.folders import Folders
from twinlake.services.ports import Ports


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a part may know: folders, ports, addresses and secrets, and the Java to use."""

    settings: Settings
    folders: Folders
    ports: Ports
    java_home: Path
    services: Services
    in_container: bool = False
    """Whether each part has a container, and so a view of its own, already."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """What to start, and what to add to the environment."""

    arguments: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)


def _nothing(context: Context) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Part:
    """One thing to keep running.

    `prepare` runs before every start and may raise a TwinlakeError, `probe` returns what the part answered
    and raises while it does not. A part without a command is done when `prepare` is.
    """

    name: str
    service: str
    """The name a person knows it by; the components of Airflow are one service."""
    given: bool = False
    """Whether it is one of the user's own: it is asked, and neither started nor ended."""
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """Parts that have the cores first: where they are starting too, this one waits a minute at most for them,
    and does not need them. Containers start side by side."""
    ports: tuple[str, ...] = ()
    prepare: Callable[[Context], None] = _nothing
    command: Callable[[Context], Command] | None = None
    probe: Callable[[Context], str] = lambda context: "done"
    note: Callable[[Context], str] = lambda context: ""
    """What a person should know of it as well; shown by `twinlake status`."""
    error: Callable[[Context], TwinlakeError | None] = lambda context: None
    """What somebody has to look at although the part answers; asked by `twinlake status`."""
    tidy: Callable[[Context], None] = _nothing
    """Deletes what the part has kept long enough; called once a day while it runs."""
    grace_s: float = 20.0
    """How long it may take to end by itself."""


def get_json(url: str, headers: Mapping[str, str] | None = None) -> Any:
    """What the part answers; httpx.HTTPError when it does not, or not with success."""
    return _client().get(url, headers=dict(headers or {})).raise_for_status().json()


def status_of(url: str) -> int:
    """Of HTTP; httpx.HTTPError when the part does not answer."""
    return _client().get(url).status_code


@cache
def _client() -> httpx.Client:
    # **why** one: a new client reads the system's certificates, 30 ms of CPU at each of many probes a second.
    return httpx.Client(trust_env=False, timeout=5)
