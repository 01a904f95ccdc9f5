"""Admission: who is let in, without computing the hash of the same password with every request.

That takes milliseconds on purpose, and a service that looks up a row sends its password each time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from twinlake.config import users
from twinlake.config.users import User

MOST = 1_000


class Admission:
    """Of one users file, which is read each time: whoever is removed, or has another password, is out at
    once. What is remembered is a digest by a key of this process, of right passwords alone."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._key = secrets.token_bytes(32)
        self._lines: dict[bytes, str] = {}

    def admits(self, name: str, password: str) -> User | None:
        """The user with this name and password. UsageError of a file that cannot be read."""
        shown = hmac.digest(self._key, f"{name}\0{password}".encode(), hashlib.sha256)
        line = self._lines.get(shown)
        user = users.load(self._file).get(name) if line else None
        if user and line and (signed_in := user.signed_in_by(line)):
            return signed_in
        found = users.admitted(self._file, name, password)
        if found:
            if len(self._lines) >= MOST:
                self._lines.clear()
            self._lines[shown] = found.line
        return found
