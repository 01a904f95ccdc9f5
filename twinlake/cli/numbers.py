"""Numbers on a command line: written in plain digits, within their bounds. Typer itself takes 1.0 for 1."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import typer

_WHOLE, _DECIMAL = re.compile(r"[0-9]{1,18}"), re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")


def whole(least: int = 0, most: int | None = None) -> Callable[[str], int]:
    """What an option's `parser` is: 18 digits at most, so that everybody can keep the number."""

    def parse(text: str | int) -> int:
        if isinstance(text, int):  # the default
            return text
        if not _WHOLE.fullmatch(text) or not least <= int(text) <= (math.inf if most is None else most):
            bounds = f"from {least} to {most:,}" if most is not None else f"of {least} or more"
            raise typer.BadParameter(f"{text!r} is not a whole number {bounds}")
        return int(text)

    return parse


def rate(text: str | float) -> float:
    """The same for a number that may have decimal places."""
    if isinstance(text, str) and not _DECIMAL.fullmatch(text):
        raise typer.BadParameter(f"{text!r} is not a number of 0 or more")
    return float(text)
