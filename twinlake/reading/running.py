"""Running statements: whose they are, since when, what memory they hold; and who may end one of them.

Everybody sees their own; who acts (`config/users.py`) sees all, and may end those of others. That is an act:
it is in the audit log before it is taken. This process cannot write there, so it looks whether it is there.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from twinlake.base.errors import BusyError, NotFoundError, TwinlakeError, UsageError
from twinlake.base.times import Clock, format_moment, utc_now
from twinlake.config.users import User
from twinlake.lake.catalog.audit_log import CANCEL, Act
from twinlake.reading.answer import STOPPED

HTTP, JDBC, FLIGHT = "http", "jdbc", "flight"
ID_LENGTH = 12
_ID = re.compile(f"[0-9a-f]{{{ID_LENGTH}}}")
LONGEST_SQL = 2_000
"""Characters of a statement that are listed."""


def new_id() -> str:
    return uuid4().hex[:ID_LENGTH]


@dataclass(eq=False)
class Running:
    """One over HTTP or Flight SQL, from when it waits for its turn. `left` is set when nobody waits
    for its answer."""

    user: str
    sql: str
    at: datetime
    since: float
    endpoint: str = HTTP
    id: str = field(default_factory=new_id)
    left: threading.Event = field(default_factory=threading.Event)
    cut: threading.Event = field(default_factory=threading.Event)
    """Is set when it was ended, also while its answer is being sent."""
    has_begun: bool = False
    is_sent: bool = False
    """Whether its answer is being sent, for those that are listed until it is."""
    lasts: bool = False
    """Whether it goes on for as long as its client likes: of one who follows a table."""
    why: TwinlakeError | None = None
    """What its client gets, where somebody has ended it."""

    @property
    def tag(self) -> str:
        """Of its Spark jobs."""
        return f"query-{self.id}"

    @property
    def state(self) -> str:
        if self.is_sent:
            return "ending" if self.cut.is_set() else "sending"
        return "ending" if self.left.is_set() else "running" if self.has_begun else "waiting"

    def end(self, why: TwinlakeError) -> None:
        self.why = why
        self.left.set()
        self.cut.set()


class RunningStatements:
    """`java` is `twinlake/java/twinlake/reading/RunningStatements`: without it nothing is known of JDBC and
    of memory. `acts` reads the audit log, the newest first."""

    def __init__(
        self, java: Any = None, acts: Callable[[], list[Act]] = list, now: Clock = utc_now,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._java, self._acts, self._now, self._clock = java, acts, now, clock
        self._here: dict[str, Running] = {}

    @contextmanager
    def one(self, user: str, sql: str, endpoint: str = HTTP, id: str = "") -> Iterator[Running]:
        """Inside, it waits for its turn and is computed; an error of one that was ended says who did it. It
        has this `id` where no other has it."""
        made = Running(user=user, sql=sql, at=self._now(), since=self._clock(), endpoint=endpoint)
        if _ID.fullmatch(id) and id not in self._here:
            made.id = id
        self._here[made.id] = made
        try:
            yield made
        except BaseException as error:
            made.is_sent = False
            if made.why is None or not isinstance(error, Exception):
                raise
            raise made.why from error
        finally:
            if not made.is_sent:
                del self._here[made.id]

    def sends(self, one: Running) -> None:
        """From now on its answer is sent, and it is listed until `has_sent`."""
        one.is_sent = True

    def has_sent(self, one: Running) -> None:
        self._here.pop(one.id, None)

    def listed(self, user: User) -> list[dict[str, Any]]:
        """Those that this user sees, the oldest first: id, user, endpoint (http, jdbc or flight), state, sql,
        started_at (RFC 3339, UTC), seconds, and memory_bytes, which is None where it is not known."""
        found = [one for one in (*self._of_python(), *self._jdbc()) if user.acts or one["user"] == user.name]
        return sorted(found, key=lambda one: -one["seconds"])

    def end_of(self, user: str, why: TwinlakeError, lasting_alone: bool = False) -> None:
        """Ends those of this user that are not over JDBC; each client gets this error. Others than those that
        last end soon."""
        for one in list(self._here.values()):
            if one.user == user and (one.lasts or not lasting_alone):
                one.end(why)

    def end(self, id: str, user: User) -> dict[str, Any]:
        """Ends one that the user sees, and returns it as it was listed. NotFoundError where there is none;
        UsageError for one of somebody else's that no entry of the audit log ends."""
        found = next((one for one in self.listed(user) if one["id"] == id), None)
        if found is None:
            raise _gone(id)
        why, remedy = f"{user.name} has cancelled it, by the same login", "ask again"
        if found["user"] != user.name:
            act = next((one for one in self._acts() if (one.act, one.job) == (CANCEL, id)), None)
            if act is None:
                raise UsageError(
                    f"query {id} was not cancelled", f"it is {found['user']}'s, and the audit log lacks it",
                    "cancel it by the console or by `twinlake queries cancel`, which write it down first",
                )  # fmt: skip
            why = f"{act.who} has cancelled it" + (f": {act.why}" if act.why else "")
            remedy = f"talk to {act.who}, or ask for less"
        self._end(found, BusyError(STOPPED, why, remedy))
        return found

    def _end(self, found: Mapping[str, Any], why: TwinlakeError) -> None:
        id = found["id"]
        one = self._here.get(id)
        if one is not None:
            one.end(why)
        elif not self._java or not self._java.end(self._full_id(id), why.what, why.why, why.remedy):
            raise _gone(id)

    def _of_python(self) -> Iterator[dict[str, Any]]:
        held = self._held()
        for one in list(self._here.values()):
            of_tag = [count for tags, count in held.items() if one.tag in tags.split(",")]
            yield _facts(
                one.id, one.user, one.endpoint, one.sql, one.at, self._clock() - one.since, state=one.state,
                memory=sum(of_tag) if self._java else None,
            )  # fmt: skip

    def _jdbc(self) -> Iterator[dict[str, Any]]:
        held, now = self._held(), self._now()
        for one in self._of_java():
            at = datetime.fromtimestamp(one["started_ms"] / 1_000, UTC)
            age = max(timedelta(0), now - at).total_seconds()
            memory = held.get(one["id"], 0)
            yield _facts(_short(one["id"]), one["user"], JDBC, one["sql"], at, age, "running", memory)

    def _of_java(self) -> list[dict[str, Any]]:
        return json.loads(self._java.overJdbc()) if self._java else []

    def _held(self) -> dict[str, int]:
        return json.loads(self._java.held()) if self._java else {}

    def _full_id(self, id: str) -> str:
        return next((one["id"] for one in self._of_java() if _short(one["id"]) == id), "")


def _facts(
    id: str, user: str, endpoint: str, sql: str, at: datetime, seconds: float, state: str, memory: int | None
) -> dict[str, Any]:
    text = sql if len(sql) <= LONGEST_SQL else f"{sql[:LONGEST_SQL]}…"
    return {
        "id": id, "user": user, "endpoint": endpoint, "state": state, "sql": text,
        "started_at": format_moment(at), "seconds": round(seconds, 1), "memory_bytes": memory,
    }  # fmt: skip


def _short(id: str) -> str:
    """Of Spark's own id, which is as long as a line."""
    return id.replace("-", "")[:ID_LENGTH]


def _gone(id: str) -> NotFoundError:
    return NotFoundError(
        f"no query {id} is running", "it has ended, or there was none that you see",
        "see `twinlake queries`",
    )  # fmt: skip
