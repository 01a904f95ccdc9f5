"""The process of the alarms: `python -m twinlake.alarms --home HOME --project DIR`, started by `up`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from twinlake.alarms.receivers import receivers_of
from twinlake.alarms.watch import Watch
from twinlake.base import service_log
from twinlake.base.errors import TwinlakeError
from twinlake.base.times import utc_now
from twinlake.config.project import project_at
from twinlake.config.settings import Settings
from twinlake.config.settings_file import overrides


def main(arguments: list[str] | None = None) -> int:
    """Runs until it is stopped."""
    given = _parse(arguments)
    service_log.start()
    try:
        settings = Settings(
            home=given.home.absolute(), in_project=project_at(given.project), overrides=overrides(os.environ),
            active_file=given.settings,
        )  # fmt: skip
        watch = Watch(settings, receivers_of(settings), utc_now)
    except TwinlakeError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: watch.stop())
    watch.run()
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m twinlake.alarms", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="the data directory")
    parser.add_argument("--project", type=Path, help="the nearest one upward unless given")
    parser.add_argument("--settings", type=Path, help="the active twinlake.toml; HOME's own unless given")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
