"""Options: the arguments that say where a process serves its metrics, and who may read them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from twinlake.base.passwords import verify

if TYPE_CHECKING:
    from twinlake.metrics.endpoint import Endpoint
    from twinlake.metrics.scrape import Collector


def words(host: str, port: int, password_file: Path) -> tuple[str, ...]:
    """Of the command line that starts the process."""
    return (
        "--metrics-host", host, "--metrics-port", str(port), "--metrics-password-file", str(password_file),
    )  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """All of them, or none: then nothing is served."""
    parser.add_argument("--metrics-host", default="127.0.0.1", help="where /metrics listens")
    parser.add_argument("--metrics-port", type=int, help="its port; nothing is served without one")
    parser.add_argument("--metrics-password-file", type=Path, help="who may read it: user and hash")


def start_endpoint(given: argparse.Namespace, collector: Collector) -> Endpoint | None:
    """Serves from now on what the collector finds; None where no port is given."""
    if given.metrics_port is None or given.metrics_password_file is None:
        return None
    from twinlake.metrics.endpoint import Endpoint
    from twinlake.metrics.scrape import registry_of

    file: Path = given.metrics_password_file.absolute()

    def admits(user: str, password: str) -> bool:
        return verify(file.read_text(encoding="utf-8"), user, password)

    endpoint = Endpoint(registry_of(collector), given.metrics_host, given.metrics_port, admits)
    endpoint.start()
    return endpoint
