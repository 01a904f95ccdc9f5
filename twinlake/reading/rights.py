"""Active rights: the SQL server's JVM knows what each user may read, as soon as the users' file says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import structlog

from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.location import Location
from twinlake.config import users
from twinlake.config.rights import ALL
from twinlake.config.users import User
from twinlake.lake.catalog import described

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S = 1.0
journal = structlog.get_logger(__name__)


class Judge(Protocol):
    """Says what somebody may see now, beside the statements that the JVM judges itself: whoever was let in
    with more rights a minute ago has those of now."""

    def sees_everything(self, user: User) -> bool:
        """Whether nothing is held back from this user."""

    def sees_all(self, user: User, *views: str) -> bool:
        """Whether this user sees every row and column of these views of `serve`, as they are."""

    def may_read(self, user: User, view: str) -> bool:
        """Whether this user may read anything of this view of `serve`."""

    def like(self, user: User, view: str) -> str:
        """The same for all who see the same of this view of `serve`, whenever they look; empty for who sees
        all of it."""

    def tells_apart(self, user: User, view: str, column: str) -> bool:
        """Whether what this user sees of the column tells its values apart."""


class Unlimited:
    """Everybody sees everything."""

    def sees_everything(self, user: User) -> bool:
        return True

    def sees_all(self, user: User, *views: str) -> bool:
        return True

    def may_read(self, user: User, view: str) -> bool:
        return True

    def like(self, user: User, view: str) -> str:
        return ""

    def tells_apart(self, user: User, view: str, column: str) -> bool:
        return True


class Known(NamedTuple):
    """Of one user: None for who sees everything, and the lines of the passwords that let them in."""

    rights: dict[str, Any] | None
    passwords: frozenset[str]


class RightsInForce:
    """Follows the users' `file` and the lake's classifications, every second and whenever somebody signs in.

    `ended` is called with each user who may read something else from now on, or nothing, or has another
    password, with the error for them, and whether it is the password alone. Statements and connections over
    JDBC end here. Where the file cannot be read nobody reads anything.
    """

    def __init__(
        self, spark: SparkSession, lake: Location, file: Path,
        ended: Callable[[str, TwinlakeError, bool], object],
    ) -> None:  # fmt: skip
        self._lake, self._file, self._ended = lake, file, ended
        jvm: Any = spark._jvm
        self._rights, self._sessions = jvm.twinlake.reading.Rights, jvm.twinlake.reading.Sessions
        self._owner = spark._jsparkSession
        self._looking = threading.Lock()
        self._of_each: dict[str, Known] = {}
        self._seen: object = None
        self._classified: object = None
        self._classes: described.Classes = {}
        self._mask_key = ""
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rights", daemon=True)

    def start(self) -> None:
        """Read once, then every second."""
        self._look_at_classes()
        self.look()
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()

    def look(self) -> None:
        """What the file says now is active when this returns."""
        with self._looking:
            self._look_at_users()

    def sees_everything(self, user: User) -> bool:
        known = self._of_each.get(user.name)
        return known is not None and known.rights is None

    def may_read(self, user: User, view: str) -> bool:
        return self.sees_everything(user) or bool(self._rights.reads(user.name, view))

    def sees_all(self, user: User, *views: str) -> bool:
        return self.sees_everything(user) or all(
            self._rights.seesAll(self._owner, user.name, one) for one in views
        )

    def like(self, user: User, view: str) -> str:
        known = self._of_each.get(user.name)
        if known is None or self.sees_all(user, view):
            return "" if known else "nothing"
        return json.dumps([known.rights, self._classes.get(view), self._mask_key], sort_keys=True)

    def tells_apart(self, user: User, view: str, column: str) -> bool:
        return bool(self._rights.tellsApart(user.name, view, column))

    def _look_at_users(self) -> None:
        seen = _stamp(self._file)
        if seen == self._seen:
            return
        try:
            found = {one.name: one for one in users.load(self._file).values() if not one.disabled}
            key = users.mask_key(self._file)
        except UsageError as error:
            journal.error("nobody reads anything", why=str(error))
            found, key = {}, ""
        now = {
            name: Known(None if one.rights == ALL else one.rights.to_json(), frozenset(one.lines))
            for name, one in found.items()
        }
        self._rights.key(key)
        self._rights.tell(json.dumps({name: one.rights for name, one in now.items()}))
        before, self._of_each, self._seen, self._mask_key = self._of_each, now, seen, key
        for name in _lost(before, now):
            journal.info("a user has lost a right or a password, and is disconnected", user=name)
            is_in = name in now and now[name].rights == before[name].rights
            changed = "a password of {} has" if is_in else "the rights of {} have"
            why = TwinlakeError(
                "the statement was ended, and its connection closed", f"{changed.format(name)} changed",
                "connect again; `twinlake users list` shows the rights",
            )  # fmt: skip
            self._sessions.end(name, why.what, why.why, why.remedy)
            # a statement over HTTP ends soon, and may have come with the password of now
            self._ended(name, why, is_in)

    def _look_at_classes(self) -> None:
        published = described.published(self._lake, described.CLASSES)
        if published != self._classified:
            found = described.classified(self._lake)
            self._rights.classify(json.dumps(found))
            self._classes, self._classified = found, published

    def _run(self) -> None:
        while not self._ending.wait(LOOK_S):
            try:
                self._look_at_classes()
                self.look()
            except Exception:
                journal.exception("the users' rights cannot be followed; it is tried again")


def _lost(before: Mapping[str, Known], now: Mapping[str, Known]) -> list[str]:
    """Who had rights that are others now, or a password that lets nobody in any more; who may read everything
    from now on has lost none."""
    return [
        name
        for name, known in before.items()
        if name not in now
        or (now[name].rights != known.rights and now[name].rights is not None)
        or known.passwords - now[name].passwords
    ]


def _stamp(file: Path) -> object:
    """Another one for a file that was replaced."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
