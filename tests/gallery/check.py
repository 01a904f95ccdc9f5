"""`python -m tests.gallery.check EXAMPLE`: its tables recomputed from the broker's bytes by other code.

The data directory is $TWINLAKE_HOME's, or --home. Exit code 1: they differ. Wait until `twinlake status`
shows no lag first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.project import EXAMPLES, PROJECT
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.catalog.release_log import live


def check(example: str, settings: Settings) -> int:
    """0 where all tables of the example are equal. UsageError where they are not live yet."""
    settings.services()
    formats.refuse_other(settings.lake)
    release = live(settings.lake)
    lacking = [one.name for one in EXAMPLES[example] if release is None or one.name not in release.tables]
    if lacking:
        raise UsageError(
            f"{example} cannot be checked yet", f"the live release lacks {', '.join(lacking)}",
            "run `twinlake plan`, `twinlake build`, `twinlake promote`",
        )  # fmt: skip
    compared = {
        table.name: (table.view_keys, [
            name for name in table.timeless if name not in (*table.view_keys, *table.implied)
        ])
        for table in EXAMPLES[example]
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "tests.oracle.gallery", example, "--services", str(settings.services_file),
         "--tables", json.dumps(compared)],
        cwd=PROJECT,
    ).returncode  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gallery.check", description=__doc__)
    parser.add_argument("example", choices=EXAMPLES)
    parser.add_argument("--home", type=Path, help="the data directory")
    given = parser.parse_args()
    environ = {**os.environ, **({"TWINLAKE_HOME": str(given.home.absolute())} if given.home else {})}
    try:
        return check(given.example, Settings.of(environ))
    except TwinlakeError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
