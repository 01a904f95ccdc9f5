"""Checked: what `twinlake check` has found of definitions, kept until something of theirs changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from twinlake.base.errors import DefinitionError
from twinlake.base.files import replace_file
from twinlake.definitions.premises import hashed, newest, premises
from twinlake.kinds.kind import Kind
from twinlake.topics.topic import Topic

Said = tuple[str, int, str, str, int | None]
"""(file, line, why, remedy, column)"""


@dataclass(frozen=True, kw_only=True)
class Found:
    """Of a definition: what Spark calls wrong in it; of a sound one its view's columns, and warnings."""

    fingerprint: str
    columns: tuple[tuple[str, str], ...]
    warnings: tuple[Said, ...] = ()
    wrong: tuple[Said, ...] = ()

    @classmethod
    def of(
        cls, fingerprint: str, columns: Iterable[tuple[str, str]], warnings: Iterable[DefinitionError]
    ) -> Found:
        return cls(fingerprint=fingerprint, columns=tuple(columns), warnings=_said(warnings))

    @classmethod
    def of_wrong(cls, wrong: Iterable[DefinitionError]) -> Found:
        """Of a definition that is not sound."""
        return cls(fingerprint="", columns=(), wrong=_said(wrong))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Found:
        return cls(
            fingerprint=data["fingerprint"],
            columns=tuple((name, type_) for name, type_ in data["columns"]),
            warnings=_read(data["warnings"]),
            wrong=_read(data.get("wrong", ())),
        )


def errors(table: str, said: Iterable[Said]) -> list[DefinitionError]:
    """What was said of a table, as it was said first."""
    return [DefinitionError(table, *one) for one in said]


def _said(found: Iterable[DefinitionError]) -> tuple[Said, ...]:
    return tuple((one.file, one.line, one.why_text, one.remedy, one.column) for one in found)


def _read(data: Iterable[Iterable[Any]]) -> tuple[Said, ...]:
    return tuple((file, line, why, remedy, column) for file, line, why, remedy, column in data)


class Checked:
    """By what each finding rests on. Without a file, only for as long as it lives."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[str, Any] = {}
        self._found: dict[str, Found] = {}
        if file is not None:
            with suppress(OSError, ValueError):  # it is found out again
                data = json.loads(file.read_text())
                self._known = data if isinstance(data, dict) else {}

    def get(self, key: str) -> Found | None:
        found = self._found.get(key)
        if found is None and key in self._known:
            with suppress(KeyError, TypeError, ValueError):
                found = self._found[key] = Found.from_json(self._known[key])
        return found

    def put(self, key: str, found: Found) -> None:
        self._found[key] = found

    def save(self) -> None:
        """For the next check; not where nobody may write."""
        if self._file is None or self._found.keys() <= self._known.keys():
            return
        kept = newest(self._known, {key: asdict(found) for key, found in self._found.items()})
        with suppress(OSError):
            replace_file(self._file, json.dumps(kept))


def rests_on(
    table: Kind, topics: Mapping[str, Topic], tables: Mapping[str, Kind], upstream: Mapping[str, str]
) -> str:
    """The name of all that is said of a definition by its text and its premises. What it imports is in it
    already: a definition is data. `upstream` is this of the tables that it reads."""
    place = table.place
    file = Path(place.file) if place else None
    text = hashlib.sha256(file.read_bytes()).hexdigest() if file and file.is_file() else ""
    return hashed([premises(table, topics, tables, upstream, {}), place and [place.file, place.line], text])
