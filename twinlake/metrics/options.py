"""Options: the arguments that say where a process serves its metrics, to whom, and where it sends them."""

from __future__ import annotations

import argparse
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from twinlake.base.passwords import verify

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

    from twinlake.metrics.endpoint import Endpoint
    from twinlake.metrics.otlp import Pusher
    from twinlake.metrics.scrape import Collector


def words(host: str, port: int, password_file: Path) -> tuple[str, ...]:
    """Of the command line that starts the process."""
    return (
        "--metrics-host", host, "--metrics-port", str(port), "--metrics-password-file", str(password_file),
    )  # fmt: skip


def words_to_send(url: str, headers_file: Path | None, seconds: int) -> tuple[str, ...]:
    """The same of a receiver of OpenTelemetry's."""
    secret = ("--metrics-otlp-headers-file", str(headers_file)) if headers_file else ()
    return ("--metrics-otlp-url", url, "--metrics-otlp-seconds", str(seconds), *secret)


def add_options(parser: argparse.ArgumentParser) -> None:
    """All that say where it serves, or none: then nothing is served. The same of whom it sends them to."""
    parser.add_argument("--metrics-host", default="127.0.0.1", help="where /metrics listens")
    parser.add_argument("--metrics-port", type=int, help="its port; nothing is served without one")
    parser.add_argument("--metrics-password-file", type=Path, help="who may read it: user and hash")
    parser.add_argument("--metrics-otlp-url", help="a receiver of OpenTelemetry's that gets them, too")
    parser.add_argument("--metrics-otlp-headers-file", type=Path, help="holds what it asks for")
    parser.add_argument("--metrics-otlp-seconds", type=int, default=30, help="how often")


class Started:
    """What serves and what sends the metrics of a process, until `stop`."""

    def __init__(self, *parts: Endpoint | Pusher | None) -> None:
        self._parts = [one for one in parts if one is not None]
        for one in self._parts:
            one.start()

    def stop(self) -> None:
        for one in self._parts:
            one.stop()


def start_metrics(given: argparse.Namespace, collector: Collector) -> Started:
    """Serves and sends from now on what the collector finds, as far as arguments ask for it."""
    alone = Alone(collector)
    return Started(_endpoint(given, alone), _pusher(given, alone))


class Alone:
    """One asks after the other: what a process holds in memory was made for one thread that looks."""

    def __init__(self, collector: Collector) -> None:
        self.process = collector.process
        self._collector, self._turn = collector, threading.Lock()

    def collect(self) -> list[Family]:
        with self._turn:
            return [*self._collector.collect()]


def _pusher(given: argparse.Namespace, collector: Alone) -> Pusher | None:
    if not given.metrics_otlp_url:
        return None
    from twinlake.metrics.otlp import Pusher, Receiver

    file: Path | None = given.metrics_otlp_headers_file
    to = Receiver(url=given.metrics_otlp_url, headers_file=file, every_s=given.metrics_otlp_seconds)
    return Pusher(collector.process, collector.collect, to)


def _endpoint(given: argparse.Namespace, collector: Alone) -> Endpoint | None:
    if given.metrics_port is None or given.metrics_password_file is None:
        return None
    from twinlake.metrics.endpoint import Endpoint
    from twinlake.metrics.scrape import registry_of

    file: Path = given.metrics_password_file.absolute()

    def admits(user: str, password: str) -> bool:
        lines = file.read_text(encoding="utf-8").splitlines()  # two while the password is rotated
        return any([verify(line, user, password) for line in lines])

    return Endpoint(registry_of(collector), given.metrics_host, given.metrics_port, admits)
