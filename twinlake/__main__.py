"""The command line `twinlake`: runs one command and turns its error into an exit code."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from twinlake.base.errors import UsageError

NO_READER = 128 + signal.SIGPIPE
"""What a shell shows of a program that SIGPIPE ended; the signal itself would come of any socket, too."""


def main() -> None:
    """Runs it; docs/commands.md has the exit codes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the imports take a second, and have nothing to tidy up
    from twinlake.base.errors import FullDiskError
    from twinlake.base.files import NO_ROOM
    from twinlake.cli.output import report_error

    try:
        try:
            _run()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # or a full disk is met when nobody can tell of it any more
    except (OSError, SystemExit) as error:
        if _is_of_a_closed_pipe(error):
            _write_nowhere(sys.stdout, sys.stderr)
            sys.exit(NO_READER)
        if isinstance(error, SystemExit) or error.errno not in NO_ROOM or error.filename is not None:
            raise
        _write_nowhere(sys.stdout)
        full = FullDiskError(
            "there is no room for the result", error.strerror or "", "make room where it goes"
        )
        sys.exit(report_error(full, as_json=False))


def _is_of_a_closed_pipe(error: OSError | SystemExit) -> bool:
    """Whether the reader of stdout or stderr has gone; typer and rich exit with 1 then, which means more."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    return isinstance(cause, BrokenPipeError)


def _write_nowhere(*streams: TextIO | None) -> None:
    """What could not be written is dropped: Python flushes once more at the end, and would tell of it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        if stream is not None:
            os.dup2(nowhere, stream.fileno())


def _run() -> None:
    from twinlake.base.errors import TwinlakeError, UsageError
    from twinlake.cli.app import build_app, command_of
    from twinlake.cli.output import print_json, report_error

    app = build_app(command_of(sys.argv[1:]))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app()
    except SystemExit as end:
        if "--json" in sys.argv and (wrong := _wrong_use(end)):
            print_json(wrong.to_json())  # stderr has it already
        raise
    except TwinlakeError as error:
        sys.exit(report_error(error, as_json="--json" in sys.argv))
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module in ("", "twinlake"):
            raise
        missing = UsageError(
            f"{module} is not installed", "it comes with an extra of Twinlake's, and this command needs it",
            "pip install 'twinlake[all]'; docs/install.md says which extra is for what",
        )  # fmt: skip
        sys.exit(report_error(missing, as_json="--json" in sys.argv))
    except OSError as error:
        if error.filename is None:
            raise
        named = UsageError(
            f"{error.filename} cannot be used", error.strerror or str(error),
            "fix its rights, or name another folder with --home",
        )  # fmt: skip
        sys.exit(report_error(named, as_json="--json" in sys.argv))


def _wrong_use(end: SystemExit) -> UsageError | None:
    """What typer has said of the command line before it ended; None where it ended for something else."""
    from twinlake.base.errors import UsageError

    error: Any = end.__context__
    if not hasattr(error, "format_message"):
        return None
    names, context = list[str](), error.ctx
    while context and context.parent:
        names.insert(0, context.info_name)
        context = context.parent
    usage = " ".join(["twinlake", *names, "--help"])
    return UsageError(str(error.format_message()).rstrip("."), "", f"see `{usage}`")


if __name__ == "__main__":
    main()
