"""The command line `twinlake`: runs one command and turns its error into an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys


def main() -> None:
    """Exit code 0 ok, 1 difference or failed check, 2 wrong use, 3 not reachable."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the imports take a second, and have nothing to tidy up
    from jobs.commands.output import report_error
    from jobs.errors import FullDiskError

    try:
        try:
            _run()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # or a full disk is met when nobody can tell of it any more
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it once more
        full = FullDiskError(
            "there is no room for the result", error.strerror or "", "make room where it goes"
        )
        sys.exit(report_error(full, as_json=False))


def _run() -> None:
    from jobs.commands.app import build_app
    from jobs.commands.output import report_error
    from jobs.errors import TwinlakeError, UsageError

    app = build_app()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app()
    except TwinlakeError as error:
        sys.exit(report_error(error, as_json="--json" in sys.argv))
    except OSError as error:
        if error.filename is None:
            raise
        named = UsageError(
            f"{error.filename} cannot be used", error.strerror or str(error),
            "mend its rights, or name another folder with --home",
        )  # fmt: skip
        sys.exit(report_error(named, as_json="--json" in sys.argv))


if __name__ == "__main__":
    main()
