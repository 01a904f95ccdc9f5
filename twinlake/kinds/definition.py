"""Owns what every definition has: a name, its inputs, its place in a file, and its form as JSON."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from twinlake.base.errors import DefinitionError, UsageError, near
from twinlake.base.files import shown_path
from twinlake.kinds.declared import misfits
from twinlake.kinds.lineage import behind_sql
from twinlake.topics.avro_type import COLUMN_NAME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

D = TypeVar("D", bound="Definition")
LATER = ("retention",)
"""Fields that older versions do not know: they are in the JSON of a definition that says them."""
SQL = ".sql"
"""How a file ends that is one definition, written as a statement."""
NOT_STORED = {"stored": False}
"""The metadata of a field that says nothing of the table itself, and so is not in its JSON."""


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
class Definition:
    """The fields that definitions of all kinds share, and how they say what is wrong with them.

    It carries no behaviour of a table: what a kind does stands in the kind's own module.
    """

    kind: ClassVar[str] = ""
    reads_states: ClassVar[bool] = False
    name: str
    """What the table is called, in queries and in its contract's file: letters, digits and _, a letter
    first."""
    inputs: tuple[str, ...]
    """The topics it reads; a kind that stores rows reads exactly one."""
    place: Place | None = field(default_factory=_caller, compare=False, repr=False, metadata=NOT_STORED)

    def __post_init__(self) -> None:
        for where, value, declared in misfits(self):
            if isinstance(value, type):
                raise self.error(
                    f"{where} is the class {value.__name__} itself", f"write {value.__name__}(...)"
                )
            alone = isinstance(value, str) and declared.startswith("a tuple")
            remedy = f'write {where}=("{value}",), with the comma' if alone else f"make it {declared}"
            raise self.error(f"{where} is {value!r}, not {declared}", remedy)
        if not self.inputs and not self.reads:
            raise self.error("it has no inputs", 'name its topic, like inputs=("orders",)')
        if self.stores_rows and len(self.inputs) != 1:
            raise self.error(f"a table of kind {self.kind} reads one topic, not {len(self.inputs)}")
        self.refuse_names("name", [self.name])
        self.refuse_names("input", (*self.inputs, *self.reads))

    @property
    def stores_rows(self) -> bool:
        """Whether it is a stored kind; a kind that is, or a definition of it, says so."""
        return False

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables it reads, by name; a kind that reads some says so."""
        return ()

    @property
    def query(self) -> str | None:
        """None: only a kind that is one SELECT over tables has its text."""
        return None

    def mistyped(self, types: Mapping[str, str]) -> Iterator[DefinitionError]:
        """Nothing: only of a whole query the types are known no sooner than those of the view."""
        return iter(())

    def mismatched(self, stepped: Mapping[str, Any]) -> Iterator[DefinitionError]:
        """Nothing: only a kind that merges states of several tables cares of what these are made."""
        return iter(())

    def bound(self: D, tables: Mapping[str, Any]) -> D:
        """Itself: only a kind that reads tables has to know their definitions."""
        return self

    def follows_watermark(self, view_clock: Any) -> Mapping[str, str] | None:
        """None; a kind that can compute what follows the watermark from the rest of a row says how."""
        return None

    @property
    def additive(self) -> tuple[str, ...]:
        """Nothing: only of counts and sums a kind knows that they add up."""
        return ()

    @property
    def time_column(self) -> str | None:
        """None; a kind whose rows are each of a time says where that stands."""
        return None

    @property
    def in_part(self) -> str | None:
        """None; a kind whose rows are made of several records says what they lack without the older ones."""
        return None

    @property
    def ending(self) -> Any:
        """None: only a table with windows of time may say how long it shows them."""
        return None

    @property
    def clock(self) -> Any:
        """None: only a table with windows of time, or one that keeps rows by time, goes by one."""
        return None

    @property
    def stored_anew(self: D) -> D:
        """Itself; a kind that stores its rows otherwise than versions of before says how."""
        return self

    @property
    def by_state(self: D) -> D:
        """Itself; a kind whose states are each in several rows says how one is shown by itself."""
        return self

    def shown_in(self, states: DataFrame) -> DataFrame:
        """Themselves; a kind whose states are each in several rows says in which."""
        return states

    def gathered(self, relation: str) -> str:
        """Itself; a kind that groups more rows than it reads has those of a key brought together before."""
        return relation

    def late(self, records: str) -> str | None:
        """None: only a table with windows of time tells what came late for them."""
        return None

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        """All of them; a kind that knows which of them says so."""
        return behind_sql(source, shown, ())

    def type_errors(self, rows: Mapping[str, Any]) -> Iterator[DefinitionError]:
        """Nothing; a kind in which something is easily forgotten says what."""
        return iter(())

    @property
    def decided_by(self) -> tuple[str, ...]:
        """Nothing: only a kind whose row is one record's says by what that is chosen."""
        return ()

    @property
    def decided_place(self) -> str | None:
        """The greatest; a kind that shows more than that of a key says which."""
        return None

    def unfit(self, tables: Mapping[str, Any]) -> Iterator[DefinitionError]:
        """Nothing: only a kind that reads states is particular about tables."""
        return iter(())

    @property
    def kept(self) -> Any:
        """Not at all; a definition that keeps its rows for joins says how."""
        return None

    @property
    def paired(self) -> Any:
        """Nothing; a kind that joins rows says which it pairs."""
        return None

    def after_steps(self, rows: DataFrame) -> DataFrame | None:
        """None; a kind that reads a record's fields by row-local steps alone says what these give."""
        return None

    def appended(self, records: DataFrame) -> DataFrame | None:
        """None; a kind whose rows never change says which ones records add."""
        return None

    def unwindowed(self, key: str) -> Any:
        """Nothing; a kind that has windows says what they add up to."""
        return None

    def shape(self) -> Mapping[str, Any]:
        """DefinitionError: only a kind whose states merge whatever topic they are of has one."""
        raise self.error(f"a table of kind {self.kind} cannot be shown with others as one")

    def error(self, why: str, remedy: str = "") -> DefinitionError:
        """An error at the place of this definition."""
        return self._error_at(self.place.line if self.place else 0, why, remedy)

    def error_at_text(self, text: str, why: str, remedy: str = "", word: str = "") -> DefinitionError:
        """An error at the line of this definition in which `text` is written; at a word of it, where one is
        given."""
        line, column = self._place_of(text, word)
        return self._error_at(line, why, remedy, column)

    def refuse_names(self, what: str, texts: Iterable[str]) -> None:
        """DefinitionError for a name that is none, or that is given twice."""
        seen: set[str] = set()
        for text in texts:
            if not COLUMN_NAME.fullmatch(text):
                raise self.error(f"{what} {text!r} is not made of letters, digits and _, a letter first")
            if text.lower() in seen:
                raise self.error(f"{what} {text!r} is given twice (case is ignored)")
            seen.add(text.lower())

    def refuse_shown(self, what: str, texts: Iterable[str], own: Sequence[str] = ()) -> None:
        """DefinitionError for a name that no column of a view may have: states and scales use `__`, and `own`
        are columns that the kind adds itself."""
        texts = list(texts)
        for text in texts:
            if "__" in text:
                raise self.error(f"{what} {text!r} has two _ in a row, which states use themselves")
            if text.lower() in own:
                why = f"{what} {text!r} has the name of one that every table of kind {self.kind} has"
                raise self.error_at_text(text, why, f"name it otherwise; it has {', '.join(own)} itself")
        self.refuse_names(what, texts)

    def refuse_unknown(self, what: str, texts: Iterable[str], known: Iterable[str]) -> None:
        """DefinitionError for a text that is not one of the known ones."""
        for text in texts:
            if text not in known:
                meant = near(text, known, listed=False) or f": {', '.join(known)}"
                raise self.error_at_text(text, f"{what} {text!r} is not one of its columns{meant}")

    def to_json(self) -> dict[str, Any]:
        """Plain data, the place left out; `kinds.all.from_json` is its exact inverse.

        Maps become lists of pairs: their order is meaning, and JSON objects promise none.
        """
        values = {name: getattr(self, name) for name in stored_fields(type(self))}
        said = {name: value for name, value in values.items() if value is not None or name not in LATER}
        return {"kind": self.kind, **{name: _to_json(value) for name, value in said.items()}}

    def _error_at(self, line: int, why: str, remedy: str = "", column: int | None = None) -> DefinitionError:
        file = shown_path(self.place.file) if self.place else ""
        return DefinitionError(self.name, file, line, why, remedy, column)

    def _place_of(self, text: str, word: str) -> tuple[int, int | None]:
        """Line and column of the text in this definition, or of a word of it; its own line where it is not
        written so."""
        if self.place is None:
            return 0, None
        try:
            if self.place.file.endswith(SQL):
                return _place_in_sql(self.place.file, text, word) or (self.place.line, None)
            source = Path(self.place.file).read_text()
            tree = ast.parse(source)
        except (OSError, ValueError, SyntaxError):
            return self.place.line, None
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.lineno == self.place.line]
        for call in calls:
            for node in ast.walk(call):
                if isinstance(node, ast.Constant) and node.value == text:
                    return _place_in(source.splitlines(), node, word)
        return self.place.line, None


def _place_in_sql(file: str, text: str, word: str) -> tuple[int, int] | None:
    from twinlake.kinds.sql_form.text import place_of

    return place_of(Path(file).read_bytes().decode(), text, word)


def _place_in(lines: Sequence[str], node: ast.Constant, word: str) -> tuple[int, int]:
    """Where the word is first written in a text of several lines, or where the text begins."""
    column = len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
    for number in range(node.lineno, (node.end_lineno or node.lineno) + 1) if word else ():
        begin = column if number == node.lineno else 0
        if found := re.search(rf"(?<!\w){re.escape(word)}(?!\w)", lines[number - 1][begin:]):
            return number, begin + found.start() + 1
    return node.lineno, column + 1


def _to_json(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, dict):
        return [[key, _to_json(item)] for key, item in value.items()]
    return list(value) if isinstance(value, tuple) else value


def read(cls: type[D], data: Mapping[str, Any], **readers: Callable[[Any], Any]) -> D:
    """The definition of this kind in JSON data; UsageError for an unknown key or a wrong value.

    `readers` turn the JSON of a field into its value; where None is a field's default, NULL is that.
    """
    what = f"table of kind {cls.kind}"
    refuse_keys(data, {"kind", *stored_fields(cls)}, what)
    readers = {"inputs": texts, **readers}
    optional = {one.name for one in fields(cls) if one.default is None}
    try:
        values = {
            key: readers[key](value) if key in readers and not (value is None and key in optional) else value
            for key, value in data.items()
            if key != "kind"
        }
        return cls(**values, place=None)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"this is not a valid {what}: {error}", "", "compare it with to_json()") from error


def stored_fields(cls: type[Definition]) -> list[str]:
    """The names of the fields that are in its JSON."""
    return [one.name for one in fields(cls) if one.metadata.get("stored", True)]


def texts(found: Any) -> Any:
    """The tuple that became a list; a text alone stays one, and is refused."""
    return found if isinstance(found, str) else tuple(found)


def pairs(found: Iterable[Iterable[Any]]) -> dict[str, Any]:
    """The map that became a list of pairs."""
    return {name: value for name, value in found}


def refuse_keys(data: Mapping[str, Any], known: set[str], where: str) -> None:
    """UsageError for a key that nobody knows."""
    for key in data:
        if key not in known:
            raise UsageError(f"unknown key {key!r} in {where}", "", f"known: {', '.join(sorted(known))}")
