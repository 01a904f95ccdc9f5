"""Owns what somebody may have meant who misspelt a name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST = 30
"""Of more names none is listed: nobody reads them."""


def near(name: str, known: Iterable[str], *, listed: bool = True) -> str:
    """What may have been meant, as the end of a sentence; else all that is known, if it is to be listed."""
    known = tuple(known)
    lowered = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), lowered, 1)
    if found:
        return f"; did you mean {lowered[found[0]]}?"
    return f"; known: {', '.join(known)}" if listed and 0 < len(known) <= _MOST else ""
