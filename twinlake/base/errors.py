"""Owns every error that an operator or engineer can act on, the exit code each one ends in, and what may be
meant by a misspelt name.

TwinlakeError                 exit 1
|- UsageError                 exit 2   the request itself is wrong
|  |- ContractError           exit 1   a contract or schema file is wrong (file, path)
|  |- DefinitionError         exit 1   a table definition is wrong (file, line)
|  |- OtherServerError        exit 2   the server that was asked answers for other code, or other files
|- UnreachableError           exit 3   a service does not answer
|- DeniedError                exit 1   a service does not let us in, or does not let us do that
|- TimedOutError              exit 1   something that was waited for did not happen in time
|- FullDiskError              exit 1   a disk has no room left; nothing that was acknowledged is lost
|- DifferenceError            exit 1   two results that must be equal are not
|- BusyError                  exit 1   the lock or version is held by someone else
|- StoppedTopicError          exit 1   ingest refuses to guess and waits for an operator
|- StalledVersionError        exit 1   a table version cannot be advanced
|  |- LostVersionError        exit 1   it never will be again; `twinlake plan` builds it again from the log
|- DamagedError               exit 1   a file of the lake is not what was written there
|- LostHistoryError           exit 1   retention has deleted records that an answer would need
|- SilentSkipError            exit 1   Delta dropped a write without a word
|- ChangedTableError          exit 1   somebody else has altered a Delta table
|- FormatError                exit 1   the lake has a format that this code cannot read as it is
|- NotFoundError              exit 2   a table, version, job or release of that name does not exist

Three live beside what raises them: CancelledError (run.py), PassedError and ClosedMailboxError (speed/).
"""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self


class TwinlakeError(Exception):
    """Something an operator can fix: what happened, why, and what to do."""

    exit_code = 1

    def __init__(self, what: str, why: str = "", remedy: str = "", facts: Mapping[str, str] = {}) -> None:
        self.what = what
        self.why = why
        self.remedy = remedy
        self.facts = dict(facts)
        """What a program may want to know beside the words, such as file and line."""
        super().__init__(what)

    def __str__(self) -> str:
        """One text for logs: the three parts that are known, in order."""
        parts = [self.what]
        if self.why:
            parts.append(f"Why: {self.why}")
        if self.remedy:
            parts.append(f"Do: {self.remedy}")
        return "\n".join(parts)

    def alone(self) -> Self:
        """Without the frames it was raised in: who keeps an error would keep their clients alive."""
        self.__traceback__ = self.__cause__ = self.__context__ = None
        return self

    def to_json(self) -> dict[str, str]:
        """The same three parts and the facts, for the API and for `--json`."""
        said = {"error": type(self).__name__, "what": self.what, "why": self.why, "remedy": self.remedy}
        return {**said, **self.facts}


class UsageError(TwinlakeError):
    """The request is wrong; asking again in the same way cannot help."""

    exit_code = 2


class OtherServerError(UsageError):
    """A server that runs other code, or for other files, was asked what it would answer for those."""


class NotFoundError(TwinlakeError):
    """A thing was named that does not exist."""

    exit_code = 2


class UnreachableError(TwinlakeError):
    """A service that is needed does not answer."""

    exit_code = 3


class DeniedError(TwinlakeError):
    """A service that answers does not let us in, or does not let us do what was asked."""


class TimedOutError(TwinlakeError):
    """Something that was waited for did not happen in time; what had been done stays done."""


class FullDiskError(TwinlakeError):
    """A disk has no room left for what had to be written; the old content is as it was."""


class DifferenceError(TwinlakeError):
    """Two results that must be equal are not."""


class BusyError(TwinlakeError):
    """Someone else holds what this call needs; it changed nothing."""


class StoppedTopicError(TwinlakeError):
    """Ingest of one topic stopped because going on would mean guessing."""


_BUILD_AGAIN = "build it again from its log: `twinlake plan`, `twinlake build`, `twinlake promote`"


class StalledVersionError(TwinlakeError):
    """One table version cannot be advanced; the topic and the other versions go on."""


class LostVersionError(StalledVersionError):
    """A table version that can never go on: for a plan it is not there, so it is built again."""

    def __init__(self, reason: str, what: str, why: str, remedy: str = "") -> None:
        super().__init__(what, why, remedy or _BUILD_AGAIN, {"reason": reason})


class DamagedError(TwinlakeError):
    """A file of the lake is not what was written there; its facts name it and what it `belongs_to`."""


class LostHistoryError(TwinlakeError):
    """Records that an answer would need were deleted by retention, and nothing is kept of them."""


class SilentSkipError(TwinlakeError):
    """A write was not made, or would not have been: its transaction is not the one after the last."""


class FormatError(TwinlakeError):
    """The lake's format is newer, older or not known; nothing of it was read or changed."""


class ChangedTableError(TwinlakeError):
    """A Delta table is not what its only writer knows: somebody else has altered it."""


class ContractError(UsageError):
    """A contract or schema file is wrong at one path inside it."""

    exit_code = 1

    def __init__(
        self, file: Path | str, path: str, why: str, remedy: str = "", place: tuple[int, int] | None = None
    ) -> None:
        self.file, self.path, self.why_text = str(file), path, why
        self.place = place
        """(line, column) where the file's parser says them; else the path does."""
        facts = {"file": self.file, "path": path, "why": why}
        super().__init__(f"{self.file}: {path or '(top)'}: {why}", "", remedy, facts)


class DefinitionError(UsageError):
    """A table definition is wrong at one line."""

    exit_code = 1

    def __init__(
        self, table: str, file: str, line: int, why: str, remedy: str = "", column: int | None = None
    ) -> None:
        self.table, self.file, self.line, self.why_text = table, file, line, why
        self.column = column
        """Where the line says it, counted from 1; None for the line as a whole."""
        place = f"{file}:{line}" if file else "(stored definition)"
        facts = {"table": table, "file": file, "line": str(line), "why": why}
        super().__init__(f"{place}: table {table}: {why}", "", remedy, facts)


def first_lines(error: BaseException) -> str:
    """What Spark finds wrong is its first line; what follows is a plan, which says nothing to an operator."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return "\n".join(lines[: 1 if lines[0].startswith("[") else 3])[:600].rstrip(";")


def raised_at(error: BaseException, within: Path) -> tuple[str, int, int | None] | None:
    """(file, line, column) in this file or folder at which importing it has failed; None: it says none."""
    if isinstance(error, SyntaxError):
        return (error.filename, error.lineno or 0, error.offset) if error.filename else None
    frames = traceback.extract_tb(error.__traceback__)
    here = [frame for frame in frames if Path(frame.filename).is_relative_to(within)]
    return (here[-1].filename, here[-1].lineno or 0, (here[-1].colno or 0) + 1) if here else None


def error_of(data: Mapping[str, Any]) -> TwinlakeError:
    """The error that `to_json` wrote, of the class that it was (so that its exit code is the same)."""
    kind = _classes().get(str(data.get("error")), TwinlakeError)
    error = kind.__new__(kind)
    what, remedy = str(data.get("what", "")), str(data.get("remedy", ""))
    facts = {name: str(value) for name, value in data.items() if name not in ("error", "what", "remedy")}
    # a file's error says why within what already, and repeats it among its facts
    why = "" if issubclass(kind, (ContractError, DefinitionError)) else facts.pop("why", "")
    TwinlakeError.__init__(error, what, why, remedy, facts)
    return error


def malformed(faults: Iterable[Mapping[str, Any]]) -> UsageError:
    """The error of a request whose fields are wrong, from what pydantic says of each (`loc`, `msg`)."""
    return UsageError("the request is malformed", faults_text(faults), "fix the request")


def faults_text(faults: Iterable[Mapping[str, Any]], whole: str = "") -> str:
    """What pydantic says of fields in one line, without its own words for the errors of our validators; what
    is wrong as a whole begins with `whole`, where that is given."""
    said = ((".".join(map(str, one["loc"])) or whole, one["msg"]) for one in faults)
    plain = ((place, text.removeprefix("Value error, ")) for place, text in said)
    return "; ".join(f"{place}: {text}" if place else text for place, text in plain)


def refused(status: int, detail: str, method: str, path: str, served: Sequence[str] = ()) -> TwinlakeError:
    """The error of a request that the web framework itself has refused; `served` are the methods that the
    path has."""
    if status in (404, 405):
        remedy = f"use {' or '.join(served)}" if served else "check the path and the method"
        return NotFoundError(f"there is no {method} {path}", "this server does not serve it", remedy)
    return UsageError("the request is malformed", detail, "fix the request")


def _classes() -> dict[str, type[TwinlakeError]]:
    found: dict[str, type[TwinlakeError]] = {}
    open_ = [TwinlakeError]
    while open_:
        kind = open_.pop()
        found[kind.__name__] = kind
        open_ += kind.__subclasses__()
    return found


_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What breaks a row, gives orders to a terminal, turns the direction of what follows (so that a text reads as
another), or (half a character) can be written nowhere."""


def visible(text: str) -> str:
    r"""The text with its control characters as Python writes them: `\n`, `\r`, `\t`, `\x1b`, `\u202e`.

    Every other character stays as it is, the backslash too: whether `\n` is an end of line or two characters,
    `--json` tells.
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_MOST_NAMES = 30
"""Of more names none is listed: nobody reads them."""


def near(name: str, known: Iterable[str], *, listed: bool = True) -> str:
    """What may have been meant, as the end of a sentence; else all that is known, if it is to be listed."""
    known = tuple(known)
    lowered = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), lowered, 1)
    if found:
        return f"; did you mean {lowered[found[0]]}?"
    return f"; known: {', '.join(known)}" if listed and 0 < len(known) <= _MOST_NAMES else ""
