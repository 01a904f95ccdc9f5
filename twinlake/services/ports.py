"""Loopback ports: chosen once, kept in run/ports.json, chosen again when another process holds one."""

from __future__ import annotations

import json
import random
import socket
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from twinlake.base.errors import UsageError
from twinlake.base.files import replace_file

HOST = "127.0.0.1"
NAMES = (
    "broker", "broker_admin", "controller", "registry", "registry_management", "lake", "sql", "jdbc",
    "flight", "sql_tls", "jdbc_tls", "flight_tls", "airflow", "console", "lake_metrics", "sql_metrics",
    "console_metrics",
)  # fmt: skip


class Ports:
    """The port of each name. One object per supervisor; thread-safe."""

    def __init__(self, file: Path, fixed: Mapping[str, int] = {}) -> None:
        """Those that somebody has fixed are never chosen."""
        self._file = file
        self._fixed = dict(fixed)
        self._lock = threading.Lock()
        try:
            known = json.loads(file.read_text())
        except (FileNotFoundError, ValueError):
            known = {}
        before = {name: known[name] for name in NAMES if name in known}
        others = {name: port for name, port in before.items() if port not in self._fixed.values()}
        self._ports: dict[str, int] = {**others, **self._fixed}
        if self._ports != before:
            replace_file(file, json.dumps(self._ports, indent=2))
        if missing := [name for name in NAMES if name not in self._ports]:
            self._choose(missing)

    def __getitem__(self, name: str) -> int:
        return self._ports[name]

    def renew_taken(self, names: Iterable[str]) -> list[str]:
        """Chooses again for those of the names that someone else listens on, and says which.

        UsageError where somebody has fixed one of them.
        """
        with self._lock:
            taken = [name for name in names if not is_free(self._ports[name])]
            if fixed := [name for name in taken if name in self._fixed]:
                raise taken_error(fixed[0], self._fixed[fixed[0]])
            if taken:
                self._choose(taken)
            return taken

    def _choose(self, names: Iterable[str]) -> None:
        chosen = dict(self._ports)
        for name in names:
            chosen[name] = free_port(set(chosen.values()))
        replace_file(self._file, json.dumps(chosen, indent=2))
        self._ports = chosen  # only what is on disk is in use: the next supervisor reads it there


def free_port(without: set[int] | None = None) -> int:
    """A port that nobody listens on, outside the range that the system gives to outgoing connections.

    **why**: a client that keeps asking for a stopped service on such a port ends up connected to itself.
    """
    first, last = 20_000, _outgoing_start() - 1
    candidates = random.SystemRandom().sample(range(first, last), 500)
    for port in candidates:
        if port not in (without or ()) and is_free(port):
            return port
    raise OSError(f"no free port between {first} and {last} on {HOST}")


def _outgoing_start() -> int:
    try:
        start = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        start = 49_152
    return start if start > 21_000 else 65_000


def taken_error(name: str, port: int) -> UsageError:
    return UsageError(
        f"port {port} is taken, or this user may not have it",
        f"[ports] {name} fixes it, and no other is chosen",
        f"stop what listens there (`ss -ltnp 'sport = :{port}'` names it), or set another in twinlake.toml",
    )  # fmt: skip


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
