"""Owns the table definitions: the kinds Events, Aggregate and Latest, as data that round-trips to JSON.

Every step is a Spark SQL expression over the columns of the source's rows (the newest schema's fields and
`_epoch, _partition, _offset, _timestamp`). Order of the row-local steps: explode, then where, then columns.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from jobs.errors import DefinitionError, UsageError
from jobs.kinds.measure import Measure, measure_from_json
from jobs.settings import PROJECT
from jobs.times import parse_duration
from jobs.topics.schema import COLUMN_NAME


@dataclass(frozen=True, kw_only=True)
class Tumbling:
    """Windows of one size that touch and do not overlap, aligned to 1970-01-01 UTC."""

    on: str
    """A timestamp column of the row-local step; rows in which it is NULL are in no window."""
    size: str
    """A duration such as "1 minute"."""

    @property
    def length(self) -> timedelta:
        """`size` as a timedelta."""
        return parse_duration(self.size)


@dataclass(frozen=True, kw_only=True)
class Explode:
    """One row per element of an array, the element as a further column `name`; an empty array gives none."""

    name: str
    array: str


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in the project a definition was written."""

    file: str
    line: int


def _caller() -> Place | None:
    """The nearest frame outside this module and the dataclass machinery."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file != __file__ and not file.startswith("<"):
            return Place(file=file, line=frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None


@dataclass(frozen=True, kw_only=True)
class Table:
    """What every kind has: a name, a source topic, and row-local steps."""

    kind: ClassVar[str] = ""
    name: str
    source: str
    where: str | None = None
    columns: dict[str, str]
    place: Place | None = field(default_factory=_caller, compare=False, repr=False)

    def __post_init__(self) -> None:
        for what, texts in (("name", [self.name]), ("source", [self.source]), ("column", list(self.columns))):
            for text in texts:
                if not COLUMN_NAME.fullmatch(text):
                    raise self.error(f"{what} {text!r} is not made of letters, digits and _, a letter first")
        if not self.columns:
            raise self.error("it has no columns")
        self._refuse_twice("column", list(self.columns))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that identify a row of the view."""
        raise NotImplementedError

    @property
    def output(self) -> tuple[str, ...]:
        """The columns of the view, in order."""
        raise NotImplementedError

    @property
    def is_windowed(self) -> bool:
        """Whether the view has window_start and window_end."""
        return False

    def error(self, why: str, remedy: str = "") -> DefinitionError:
        """An error at the place of this definition."""
        return self.error_at(self.place.line if self.place else 0, why, remedy)

    def error_at(self, line: int, why: str, remedy: str = "") -> DefinitionError:
        """An error at another line of the definition's file, shown relative to the project."""
        file = self.place.file if self.place else ""
        if Path(file).is_relative_to(PROJECT):
            file = str(Path(file).relative_to(PROJECT))
        return DefinitionError(self.name, file, line, why, remedy)

    def _refuse_twice(self, what: str, texts: list[str]) -> None:
        seen: set[str] = set()
        for text in texts:
            if text.lower() in seen:
                raise self.error(f"{what} {text!r} is given twice (case is ignored)")
            seen.add(text.lower())

    def _refuse_unknown(self, what: str, texts: tuple[str, ...]) -> None:
        for text in texts:
            if text not in self.columns:
                raise self.error(f"{what} {text!r} is not one of its columns: {', '.join(self.columns)}")

    def to_json(self) -> dict[str, Any]:
        """Plain data, the place left out; `Table.from_json` is its exact inverse.

        Maps become lists of pairs: their order is meaning, and JSON objects promise none.
        """
        data: dict[str, Any] = {"kind": self.kind}
        for one in fields(self):
            if one.name != "place":
                data[one.name] = _to_json(getattr(self, one.name))
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Table:
        """The definition that `to_json` came from; unknown kinds and keys are refused by name."""
        return _from_json(data)


def _to_json(value: Any) -> Any:
    if isinstance(value, Measure):
        return value.to_json()
    if isinstance(value, Tumbling):
        return {"kind": "tumbling", "on": value.on, "size": value.size}
    if isinstance(value, Explode):
        return {"name": value.name, "array": value.array}
    if isinstance(value, dict):
        return [[key, _to_json(item)] for key, item in value.items()]
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, kw_only=True)
class Events(Table):
    """At most one row per record: a view over the log, nothing is stored."""

    kind = "events"

    @property
    def key_columns(self) -> tuple[str, ...]:
        return ("_epoch", "_partition", "_offset")

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.columns, *self.key_columns, "_timestamp")


@dataclass(frozen=True, kw_only=True)
class Aggregate(Table):
    """One row per key (and window): measures over the rows."""

    kind = "aggregate"
    explode: Explode | None = None
    keys: tuple[str, ...]
    window: Tumbling | None = None
    measures: dict[str, Measure]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._refuse_unknown("key", self.keys)
        self._refuse_unknown(
            "measured column", tuple(m.of for m in self.measures.values() if m.of is not None)
        )
        if self.explode and not COLUMN_NAME.fullmatch(self.explode.name):
            raise self.error(f"explode name {self.explode.name!r} is not made of letters, digits and _")
        for name in (*self.keys, *self.measures):
            if not COLUMN_NAME.fullmatch(name) or "__" in name:
                raise self.error(
                    f"output column {name!r} must be letters, digits and single _, a letter first"
                )
        if not self.measures:
            raise self.error("it has no measures")
        if not self.keys and not self.window:
            raise self.error("it has neither keys nor a window", "use a constant column as the key")
        if self.window:
            self._refuse_unknown("window column", (self.window.on,))
            try:
                whole = self.window.length // timedelta(microseconds=1)
            except UsageError as error:
                raise self.error(f"window size: {error.what}", error.remedy) from error
            if whole % 1_000_000:
                raise self.error(f"window size {self.window.size!r} is not made of whole seconds")
        self._refuse_twice("output column", list(self.output))

    @property
    def is_windowed(self) -> bool:
        return self.window is not None

    @property
    def key_columns(self) -> tuple[str, ...]:
        return (*self.keys, "window_start") if self.window else self.keys

    @property
    def output(self) -> tuple[str, ...]:
        window = ("window_start", "window_end") if self.window else ()
        return (*self.keys, *window, *self.measures, *(("final",) if self.window else ()))


@dataclass(frozen=True, kw_only=True)
class Latest(Table):
    """One row per key: the newest by the order columns, then by coordinate."""

    kind = "latest"
    keys: tuple[str, ...]
    order: tuple[str, ...]
    delete_when: str | None = None
    """SQL over `columns`: a row in which it is true wins like any other and hides its key."""
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for what, names in (("key", self.keys), ("order column", self.order), ("value", self.values)):
            if not names:
                raise self.error(f"it has no {what}s")
            self._refuse_unknown(what, names)
        self._refuse_twice("output column", list(self.output))

    @property
    def key_columns(self) -> tuple[str, ...]:
        return self.keys

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.keys, *self.values)


KINDS: dict[str, type[Table]] = {kind.kind: kind for kind in (Events, Aggregate, Latest)}


def _refuse_keys(data: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in data:
        if key not in known:
            raise UsageError(f"unknown key {key!r} in {where}", "", f"known: {', '.join(sorted(known))}")


def _from_json(data: Mapping[str, Any]) -> Table:
    kind = KINDS.get(str(data.get("kind")))
    if kind is None:
        raise UsageError(f"unknown table kind {data.get('kind')!r}", "", f"known: {', '.join(KINDS)}")
    known = {one.name for one in fields(kind)} - {"place"}
    _refuse_keys(data, known | {"kind"}, f"table of kind {kind.kind}")
    values: dict[str, Any] = {key: value for key, value in data.items() if key != "kind"}
    try:
        values["columns"] = {name: sql for name, sql in values["columns"]}
        if "measures" in values:
            values["measures"] = {name: measure_from_json(found) for name, found in values["measures"]}
        if values.get("window"):
            _refuse_keys(values["window"], {"kind", "on", "size"}, "window")
            values["window"] = Tumbling(on=values["window"]["on"], size=values["window"]["size"])
        if values.get("explode"):
            _refuse_keys(values["explode"], {"name", "array"}, "explode")
            values["explode"] = Explode(**values["explode"])
        for key in ("keys", "order", "values"):
            if key in values:
                values[key] = tuple(values[key])
        return kind(**values, place=None)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"this is no table of kind {kind.kind}: {error}", "", "compare it with to_json()"
        ) from error
