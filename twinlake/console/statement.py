"""Statement: one query of a signed-in person, sent with that person's own login; its rows, or CSV."""

from __future__ import annotations

import asyncio
import csv
import io
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import IO, Any, TypeVar

from starlette.concurrency import run_in_threadpool

from twinlake.base.errors import BusyError, DeniedError, TwinlakeError, UnreachableError, UsageError
from twinlake.config.settings import Services, Settings
from twinlake.console.metrics import ConsoleMetrics
from twinlake.console.pages import cell_text
from twinlake.console.sessions import Session
from twinlake.reading.client import Row, Waiting, ask, ask_each, ask_why
from twinlake.reading.quarantined import quarantined

T = TypeVar("T")
SHOWN = 500
"""Rows of a page."""
MOST_IN_CSV = 100_000
AT_ONCE = 8
LONGEST_SQL = 100_000
_IN_MEMORY = 4 << 20
_PIECE = 64 << 10
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a form says."""

    sql: str = ""
    as_of: str = ""

    @classmethod
    def of(cls, form: dict[str, str]) -> Asked:
        return cls(sql=form.get("sql", "").replace("\r\n", "\n"), as_of=form.get("as_of", "").strip())

    def refuse_none(self) -> None:
        if not self.sql.strip():
            what = "there is no statement"
            raise UsageError(what, "the text is empty", "write one, like SHOW TABLES IN serve")


def rows(settings: Settings, session: Session, asked: Asked) -> dict[str, Any]:
    """The SQL server's answer with the first SHOWN rows; `truncated` where there are more."""
    asked.refuse_none()
    return ask(own(settings, session), asked.sql, SHOWN, asked.as_of or None, _waiting())


def as_csv(settings: Settings, session: Session, asked: Asked) -> Iterator[bytes]:
    """All rows, whole before the first piece is given; UsageError where there are more than MOST_IN_CSV."""
    asked.refuse_none()
    services = own(settings, session)
    file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)

    def take(head: dict[str, Any], found: Iterator[Row]) -> None:
        if head["truncated"]:
            raise UsageError(
                "the rows were not written", f"there are more than {MOST_IN_CSV:,}",
                "ask for fewer; `twinlake query --json` and JDBC give any number",
            )  # fmt: skip
        file.seek(0)  # of an answer that broke off, and is asked for again
        file.truncate()
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        try:
            writer = csv.writer(text)
            writer.writerow([_harmless(column["name"]) for column in head["columns"]])
            is_number = [column["type"].startswith(_NUMBERS) for column in head["columns"]]
            for row in found:
                values = zip(row.values(), is_number, strict=True)
                writer.writerow([value if exact else _harmless(cell_text(value)) for value, exact in values])
        finally:
            text.detach()  # or the file would be closed with it

    try:
        ask_each(services, asked.sql, MOST_IN_CSV, asked.as_of or None, take, _waiting())
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return _pieces(file)


def explain(
    settings: Settings, session: Session, table: str, key: Mapping[str, str | None]
) -> dict[str, Any]:
    """The records behind the row of this key, as `twinlake explain` has them."""
    return ask_why(own(settings, session), table, key, None, _waiting())


def quarantine(
    settings: Settings, session: Session, topic: Mapping[str, Any], samples: int
) -> dict[str, Any]:
    """What a topic has in quarantine, as `twinlake quarantine` has it; `topic` has its name and `views`."""
    name, views = topic["name"], topic["views"]
    return quarantined(
        own(settings, session), name, views["quarantine"], views["replayed"], samples, waiting=_waiting()
    )


class Statements:
    """Sends so many at once: each waits in a thread that pages need, too."""

    def __init__(self, metrics: ConsoleMetrics) -> None:
        self._turns, self._metrics = asyncio.Semaphore(AT_ONCE), metrics

    async def sent(self, ask: Callable[[], T], session: Session) -> T:
        """The answer; BusyError where too many are on their way."""
        with self._metrics.statement():
            if self._turns.locked():
                why = f"{AT_ONCE} others of this console are running"
                raise BusyError("the query was not started", why, "ask again later")
            async with self._turns:
                try:
                    return await run_in_threadpool(ask)
                except TwinlakeError as error:
                    raise explained(error, session) from error


def explained(error: Exception, session: Session) -> Exception:
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


def _waiting() -> Waiting:
    def gone() -> None:
        raise UnreachableError(
            "the SQL server does not answer", "nobody listens at its address",
            "see `twinlake status` and `twinlake logs sql`, then ask again",
        )  # fmt: skip

    return Waiting(say=lambda text: None, check=gone)


def _harmless(text: str) -> str:
    """What a spreadsheet would run as a formula begins with an apostrophe; values come from anybody."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece
