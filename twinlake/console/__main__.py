"""The console's process: `python -m twinlake.console --home HOME --users FILE --port P`, started by `up`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import uvicorn

from twinlake.base import service_log
from twinlake.base.address import is_loopback
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.http_errors import Protocol
from twinlake.base.times import utc_now
from twinlake.config.project import project_at
from twinlake.config.settings import Settings
from twinlake.config.settings_file import overrides
from twinlake.console.app import build_app
from twinlake.console.console import Console
from twinlake.metrics.catalogue import CONSOLE
from twinlake.metrics.options import add_options, start_metrics
from twinlake.metrics.process import ProcessMetrics


def main(arguments: list[str] | None = None) -> int:
    """Runs until it is stopped."""
    given = _parse(arguments)
    service_log.start()
    try:
        settings = Settings(
            home=given.home.absolute(), in_project=project_at(given.project), overrides=overrides(os.environ),
            active_file=given.settings,
        )  # fmt: skip
        if not is_loopback(given.listen) and not given.certificate:
            raise UsageError(
                "the console was not started",
                f"{given.listen} is beyond loopback, and it has no certificate",
                "give certificate_file and key_file in [console] of twinlake.toml",
            )  # fmt: skip
        is_tls = given.certificate is not None
        console = Console.of(settings, given.users, given.port, is_tls, utc_now)
        config = uvicorn.Config(
            build_app(console, (*given.name, given.listen)), host=given.listen, port=given.port,
            log_level="warning", log_config=None, access_log=False, http=Protocol, server_header=False,
            lifespan="off", ws="none", ssl_certfile=given.certificate,
            ssl_keyfile=given.key,
        )  # fmt: skip
        server, process = uvicorn.Server(config), ProcessMetrics(CONSOLE, lambda: None, {})

        def is_ready() -> bool:
            return server.started and not server.should_exit

        found = console.metrics.collector(is_ready, console.sessions, process.groups())
        served = start_metrics(given, found)
    except TwinlakeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    server.run()
    served.stop()
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m twinlake.console", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="the data directory")
    parser.add_argument("--project", type=Path, help="the nearest one upward unless given")
    parser.add_argument("--settings", type=Path, help="the active twinlake.toml; HOME's own unless given")
    parser.add_argument("--users", type=Path, required=True, help="the file with the users and hashes")
    parser.add_argument("--listen", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", action="append", default=[], help="what browsers call it, too")
    parser.add_argument("--certificate", type=Path, help="PEM, the chain: it speaks TLS")
    parser.add_argument("--key", type=Path, help="PEM, its private key")
    add_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
