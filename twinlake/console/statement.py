"""Statement: one query of a signed-in person, sent with that person's own login; its rows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool

from twinlake.base.errors import BusyError, DeniedError, TwinlakeError, UnreachableError, UsageError
from twinlake.config.settings import Services, Settings
from twinlake.console.metrics import ConsoleMetrics
from twinlake.console.pages import LONGEST_CELL, cell_text
from twinlake.console.sessions import Session
from twinlake.reading.client import Waiting, ask, ask_why
from twinlake.reading.quarantined import quarantined

T = TypeVar("T")
SHOWN = 500
"""Rows of a page."""
LARGEST_PAGE = 4_000_000
"""Characters of the rows of a page, those around each cell counted: a browser has to show them."""
MARKUP_PER_CELL = 20
AT_ONCE, OF_ONE = 8, 4
"""Statements of all, and of one person."""
LONGEST_SQL = 100_000
LONGEST_LINK = 6_000
"""Characters of an address that every browser, and a sign-in on the way, pass on."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a form says."""

    sql: str = ""
    as_of: str = ""

    @classmethod
    def of(cls, form: Mapping[str, str]) -> Asked:
        return cls(sql=form.get("sql", "").replace("\r\n", "\n"), as_of=form.get("as_of", "").strip())

    @property
    def link(self) -> str:
        """A page with the statement in its editor, which runs nothing; empty where it would be too long."""
        given = {"sql": self.sql, **({"as_of": self.as_of} if self.as_of else {})}
        made = f"/query?{urlencode(given)}"
        return made if self.sql and len(made) <= LONGEST_LINK else ""

    def refuse_none(self) -> None:
        if not self.sql.strip():
            what = "there is no statement"
            raise UsageError(what, "the text is empty", "write one, like SHOW TABLES IN serve")


def rows(settings: Settings, session: Session, asked: Asked) -> dict[str, Any]:
    """The SQL server's answer with the first SHOWN rows, or fewer where they fill a page; `truncated` where
    there are more."""
    asked.refuse_none()
    answer = ask(own(settings, session), asked.sql, SHOWN, asked.as_of or None, patient())
    fit = _fitting(answer["rows"])
    return {
        **answer,
        "rows": answer["rows"][:fit],
        "truncated": answer["truncated"] or fit < len(answer["rows"]),
    }


def _fitting(found: Sequence[Mapping[str, Any]]) -> int:
    """How many rows a page can show, at least one."""
    left = LARGEST_PAGE
    for number, row in enumerate(found):
        left -= sum(min(len(cell_text(value)), LONGEST_CELL) + MARKUP_PER_CELL for value in row.values())
        if left < 0:
            return max(1, number)
    return len(found)


def explain(
    settings: Settings, session: Session, table: str, key: Mapping[str, str | None]
) -> dict[str, Any]:
    """The records behind the row of this key, as `twinlake explain` has them."""
    return ask_why(own(settings, session), table, key, None, patient())


def quarantine(
    settings: Settings, session: Session, topic: Mapping[str, Any], samples: int
) -> dict[str, Any]:
    """What a topic has in quarantine, as `twinlake quarantine` has it; `topic` has its name and `views`."""
    name, views = topic["name"], topic["views"]
    return quarantined(
        own(settings, session), name, views["quarantine"], views["replayed"], samples, waiting=patient()
    )


class Statements:
    """Sends so many at once: each waits in a thread that pages need, too. `counted` is around what is to be
    in the metrics as one statement."""

    def __init__(self, metrics: ConsoleMetrics) -> None:
        self._turns, self.counted = asyncio.Semaphore(AT_ONCE), metrics.statement
        self._of_each: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, session: Session) -> AsyncIterator[None]:
        """Within it this person has one; BusyError where too many do, of this person or of all."""
        name = session.user.name
        if self._of_each[name] >= OF_ONE:
            raise BusyError(
                "the query was not started", f"{OF_ONE} queries and files of {name} are under way",
                "wait until one has ended, or cancel one: see Running queries",
            )  # fmt: skip
        if self._turns.locked():
            why = f"{AT_ONCE} queries and files of this console are under way"
            raise BusyError("the query was not started", why, "ask again later")
        self._of_each[name] += 1
        try:
            async with self._turns:
                yield
        finally:
            self._of_each[name] -= 1

    async def answered(self, ask: Callable[[], T], session: Session) -> T:
        """The answer, by who has a turn."""
        try:
            return await run_in_threadpool(ask)
        except TwinlakeError as error:
            raise explained(error, session) from error

    async def sent(self, ask: Callable[[], T], session: Session) -> T:
        """The same in a turn of its own."""
        with self.counted():
            async with self.turn(session):
                return await self.answered(ask, session)


def explained(error: TwinlakeError, session: Session) -> TwinlakeError:
    """What a person has to know who is signed in here and was refused there."""
    if isinstance(error, UsageError) and error.what == "the request was refused":
        return DeniedError(
            f"the SQL server does not let {session.user.name} in",
            "it asks the same users as this console, so they have been changed a moment ago, or it runs with "
            "those of before",
            "sign out and in again; `twinlake down` and `twinlake up` start it with the users of now",
        )
    return error


def own(settings: Settings, session: Session) -> Services:
    """The services, with the login of who is signed in."""
    return replace(settings.services(), sql_user=session.user.name, sql_password=session.password)


def patient() -> Waiting:
    """A server that is away is asked again; one that nobody starts is not."""

    def gone() -> None:
        raise UnreachableError(
            "the SQL server does not answer", "nobody listens at its address",
            "see `twinlake status` and `twinlake logs sql`, then ask again",
        )  # fmt: skip

    return Waiting(say=lambda text: None, check=gone)
