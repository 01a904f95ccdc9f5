"""What all commands share in front of a person or a program: JSON on stdout, words on stderr, exit codes."""

from __future__ import annotations

import json
import os
from typing import Any

from rich.console import Console
from rich.markup import escape

from jobs.as_json import to_json
from jobs.errors import TwinlakeError
from jobs.settings import Settings

console = Console(stderr=True, highlight=False)
"""For words to a person: progress, tables, errors. Results of `--json` go to stdout."""


def load_settings() -> Settings:
    """The folders in use, by this shell's environment."""
    return Settings.of(os.environ)


def print_json(value: Any) -> None:
    """The value on stdout: decimals as strings, times RFC 3339 UTC."""
    print(json.dumps(to_json(value), indent=2, ensure_ascii=False))


def report_error(error: TwinlakeError, as_json: bool) -> int:
    """Says what happened, why and what to do, and returns the exit code."""
    if as_json:
        print_json(error.to_json())
    console.print(f"[bold red]{escape(error.what)}[/]")
    if error.why:
        console.print(f"why: {escape(error.why)}", soft_wrap=True)
    if error.remedy:
        console.print(f"do:  {escape(error.remedy)}", soft_wrap=True)
    return error.exit_code
