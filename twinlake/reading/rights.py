"""Rights in force: the SQL server's JVM knows what each user may read, as soon as the users' file says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

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
    """Says what somebody may see, beside the statements that the JVM judges itself."""

    def sees_all(self, user: User, *views: str) -> bool:
        """Whether this user sees every row and column of these views of `serve`, as they are."""

    def may_read(self, user: User, view: str) -> bool:
        """Whether this user may read anything of this view of `serve`."""


class Unlimited:
    """Everybody sees everything."""

    def sees_all(self, user: User, *views: str) -> bool:
        return True

    def may_read(self, user: User, view: str) -> bool:
        return True


class RightsInForce:
    """Follows the users' `file` and the lake's classifications, every second and whenever somebody signs in.

    `ended` is called with each user who may read something else from now on, or nothing, and the error for
    them; statements and connections over JDBC end here. Where the file cannot be read nobody reads anything.
    """

    def __init__(
        self, spark: SparkSession, lake: Location, file: Path, ended: Callable[[str, TwinlakeError], object]
    ) -> None:
        self._lake, self._file, self._ended = lake, file, ended
        jvm: Any = spark._jvm
        self._rights, self._sessions = jvm.twinlake.reading.Rights, jvm.twinlake.reading.Sessions
        self._owner = spark._jsparkSession
        self._looking = threading.Lock()
        self._of_each: dict[str, Any] = {}
        self._seen: object = None
        self._classified: object = None
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
        """What the file says now is in force when this returns."""
        with self._looking:
            self._look_at_users()

    def may_read(self, user: User, view: str) -> bool:
        return user.rights == ALL or bool(self._rights.reads(user.name, view))

    def sees_all(self, user: User, *views: str) -> bool:
        return user.rights == ALL or all(self._rights.seesAll(self._owner, user.name, one) for one in views)

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
        now = {name: None if one.rights == ALL else one.rights.to_json() for name, one in found.items()}
        self._rights.key(key)
        self._rights.tell(json.dumps(now))
        before, self._of_each, self._seen = self._of_each, now, seen
        for name in _lost(before, now):
            journal.info("the rights of a user have changed, who is disconnected", user=name)
            why = TwinlakeError(
                "the statement was ended, and its connection closed", f"the rights of {name} have changed",
                "connect again; `twinlake users list` shows the rights",
            )  # fmt: skip
            self._sessions.end(name, why.what, why.why, why.remedy)
            self._ended(name, why)

    def _look_at_classes(self) -> None:
        published = described.published(self._lake, described.CLASSES)
        if published != self._classified:
            self._rights.classify(json.dumps(described.classified(self._lake)))
            self._classified = published

    def _run(self) -> None:
        while not self._ending.wait(LOOK_S):
            try:
                self._look_at_classes()
                self.look()
            except Exception:
                journal.exception("the users' rights cannot be followed; it is tried again")


def _lost(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Who had rights that are others now; who may read everything from now on has lost none."""
    return [
        name
        for name, rights in before.items()
        if name not in now or (now[name] != rights and now[name] is not None)
    ]


def _stamp(file: Path) -> object:
    """Another one for a file that was replaced."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
