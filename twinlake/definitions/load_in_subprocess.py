"""The definitions as jobs/tables has them at this moment, read by a process of its own.

A server that imported them would see those of its start for ever, and end with one that ends its process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from twinlake.base.errors import TwinlakeError, UsageError, error_of
from twinlake.definitions.loader import defined

LIMIT_S = 60.0


def written(project: Path, examples: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By its name the JSON of each definition that is listed now, and of those of these examples.

    DefinitionError, with file and line, where one cannot be imported; UsageError where reading them does not
    end, or ends the process.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__, *examples], cwd=project, capture_output=True, text=True,
            timeout=LIMIT_S,
        )  # fmt: skip
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        why = f"it took longer than {LIMIT_S:g} s"
        raise _unread(why) from error
    except ValueError as error:
        raise _unread(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}") from error
    if "error" in answer:
        raise error_of(answer["error"])
    found: dict[str, dict[str, Any]] = answer["definitions"]
    return found


def _unread(why: str) -> UsageError:
    return UsageError("jobs/tables cannot be read", why, "run `twinlake check` where the lake server runs")


def main() -> None:
    """The definitions, or the error, as JSON; what a definition prints goes elsewhere."""
    answer: dict[str, Any]
    try:
        with redirect_stdout(sys.stderr):
            answer = {"definitions": {table.name: table.to_json() for table in defined(sys.argv[1:])}}
    except TwinlakeError as error:
        answer = {"error": error.to_json()}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
