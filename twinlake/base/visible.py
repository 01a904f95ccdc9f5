r"""What cannot be seen made visible: in a terminal, in the report of a plan, in what an approver reads."""

from __future__ import annotations

import re

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What breaks a row, gives orders to a terminal, turns the direction of what follows (so that a text reads as
another), or (half a character) can be written nowhere."""


def visible(text: str) -> str:
    r"""The text with its control characters as Python writes them: `\n`, `\r`, `\t`, `\x1b`, `\u202e`.

    Every other character stays as it is, the backslash too: whether `\n` is an end of line or two characters,
    `--json` tells.
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
