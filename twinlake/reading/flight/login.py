"""Login: who calls, by the user and password that every call carries.

A handshake gives back what it was given, in the form in which all drivers send it again: the server keeps no
token, so what was changed or taken away holds from the next call on, and a restart signs nobody out.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable

from twinlake.base.errors import TwinlakeError

HEADER = "authorization"


class UnknownUserError(TwinlakeError):
    """Nobody has this name and password."""

    def __init__(self) -> None:
        super().__init__(
            "the request was refused", "its user or password is missing or wrong",
            "show the name and password that you were given; those of the first user are in services.json",
        )  # fmt: skip


def shown(metadata: Iterable[tuple[str, str | bytes]]) -> tuple[str, str]:
    """User and password of a call; empty where it shows none."""
    for name, value in metadata:
        if name == HEADER and isinstance(value, str):
            scheme, _, given = value.partition(" ")
            if scheme.lower() in ("basic", "bearer"):
                return _split(given.strip())
    return "", ""


def token(user: str, password: str) -> str:
    """What the calls after a handshake show. Drivers keep one of a Bearer alone."""
    return f"Bearer {b64encode(f'{user}:{password}'.encode()).decode()}"


def _split(given: str) -> tuple[str, str]:
    try:
        text = b64decode(given + "=" * (-len(given) % 4), validate=True).decode()  # Go's driver pads nothing
    except (Error, ValueError):
        return "", ""
    user, colon, password = text.partition(":")
    return (user, password) if colon else ("", "")
