"""Sessions: who is signed in. They are in this process's memory alone, so a restart signs everybody out.

A browser holds one random word; here is its hash, with the user, the form token, and the password, by which
statements are sent to the SQL server as this person's own. No file ever has any of it.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from twinlake.base.errors import UsageError
from twinlake.config import users
from twinlake.config.users import User

IDLE_S = 30 * 60.0
LONGEST_S = 12 * 3600.0
MOST = 50
"""More at once of one person, and the one of theirs that was idle longest ends."""


@dataclass(kw_only=True)
class Session:
    """One browser's; times are by the clock of its Sessions."""

    user: User
    password: str = field(repr=False)
    began: float
    used: float
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    def holds_form_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.form_token.encode())


class Sessions:
    """Thread-safe. `file` has the users: one who is removed there, or has another password, is signed out
    with the next request; another role holds from then on."""

    def __init__(self, file: Path, clock: Callable[[], float]) -> None:
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, Session] = {}

    def begin(self, user: User, password: str) -> str:
        """The word for the browser of who has just shown this password."""
        word, now = secrets.token_urlsafe(32), self._clock()
        with self._lock:
            self._drop_ended(now)
            mine = [key for key, one in self._known.items() if one.user.name == user.name]
            if len(mine) >= MOST:
                del self._known[min(mine, key=lambda key: self._known[key].used)]
            self._known[_key(word)] = Session(user=user, password=password, began=now, used=now)
        return word

    def find(self, word: str, is_use: bool = True) -> Session | None:
        """The session, if it goes on. A page that refreshes itself is no use of it."""
        now = self._clock()
        with self._lock:
            self._drop_ended(now)
            session = self._known.get(_key(word))
        if session is None:
            return None
        user = self._now(session.user)
        if user is None:
            self.end(word)
            return None
        session.user = user
        if is_use:
            session.used = now
        return session

    def count(self) -> int:
        """Of those that go on."""
        with self._lock:
            self._drop_ended(self._clock())
            return len(self._known)

    def end(self, word: str) -> None:
        with self._lock:
            self._known.pop(_key(word), None)

    def _now(self, user: User) -> User | None:
        try:
            found = users.load(self._file).get(user.name)
        except UsageError:  # nobody is let in by what is left of it
            return None
        return found.signed_in_by(user.line) if found else None

    def _drop_ended(self, now: float) -> None:
        self._known = {
            key: one
            for key, one in self._known.items()
            if now - one.used < IDLE_S and now - one.began < LONGEST_S
        }


def _key(word: str) -> str:
    return hashlib.sha256(word.encode()).hexdigest()
