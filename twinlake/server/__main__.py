"""The lake server's process: `python -m twinlake.server --home HOME --port PORT`.

The token comes from HOME/services.json (mode 600); the log goes to stderr, one JSON object a line. An error
that keeps it from starting is reported in plain words at the end.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from twinlake.base import breakpoints, service_log
from twinlake.base.errors import TwinlakeError
from twinlake.base.times import utc_now
from twinlake.config.library import jars_folder
from twinlake.config.project import project_at
from twinlake.config.settings import Settings
from twinlake.config.settings_file import overrides
from twinlake.lake.storage.fit import check_store
from twinlake.metrics.options import add_options
from twinlake.server import lock
from twinlake.server.driver import Driver


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m twinlake.server", description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--project", type=Path, help="the project; the nearest one upward unless given")
    parser.add_argument("--jars", type=Path, default=jars_folder({}), help="the folder of the jars")
    parser.add_argument("--settings", type=Path, help="the active twinlake.toml; HOME's own unless given")
    parser.add_argument("--breakpoints", type=Path, help="for tests: see twinlake/base/breakpoints.py")
    add_options(parser)
    given = parser.parse_args(arguments)
    if given.breakpoints:
        breakpoints.honour(given.breakpoints)
    service_log.start()
    os.environ["TZ"] = "UTC"  # PySpark collects timestamps in the process's zone
    time.tzset()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        settings = Settings(
            home=given.home, in_project=project_at(given.project), jars=given.jars,
            overrides=overrides(os.environ), active_file=given.settings,
        )  # fmt: skip
        check_store(settings.lake, utc_now())
        held = lock.take(settings.lake)
        try:
            driver = Driver(settings)
            from twinlake.server.serving import serve  # while the driver's JVM starts
        except BaseException:
            held.close()
            raise
        failed = serve(settings, given, driver)  # whatever it raises: threads may still write
        held.close()
        if failed:
            raise failed
    except TwinlakeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _end(number: int, frame: FrameType | None) -> None:
    """Until the server takes its own signals: what is held is given back."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
