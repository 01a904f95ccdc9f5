"""What options of several commands share: numbers, names by comma, and which exclude each other."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from twinlake.base.errors import UsageError

_WHOLE, _DECIMAL = re.compile(r"[0-9]{1,18}"), re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")
YES = Annotated[bool, typer.Option("--yes", "-y", help="do not ask")]


def names_in(option: str, text: str | None) -> list[str]:
    """The names in an option like `A,B`; none where it is not given. UsageError for an empty one."""
    if text is None:
        return []
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(
            f"{option} has an empty name", f"it is {text!r}", f"leave it out, or give names like {option} A,B"
        )
    return names


def refuse_beside(option: str, others: Mapping[str, bool]) -> None:
    """UsageError for each of the others that is given beside this option, which would leave it out."""
    for other, stands_there in others.items():
        if stands_there:
            raise UsageError(
                f"{option} and {other} were given", f"{other} changes nothing there", "leave out one of them"
            )


def whole(least: int = 0, most: int | None = None) -> Callable[[str], int]:
    """What an option's `parser` is: plain digits, where typer itself takes 1.0 for 1, and 18 at most, so that
    everybody can keep the number."""

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
