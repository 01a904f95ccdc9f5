"""Plans: what releases would change, kept in the lake with what was found out about each."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

import structlog

from twinlake.base.errors import DamagedError, NotFoundError, UsageError
from twinlake.base.location import Location
from twinlake.definitions.fingerprint import FORMULA
from twinlake.definitions.premises import newest
from twinlake.lake.storage import store

journal = structlog.get_logger(__name__)
T = TypeVar("T")
_ID = r"[0-9a-f]{12}"
_ANALYSED = "analysed.json"
KEEP = 200
"""So many plans are kept whatever became of them; those of releases always."""
Action = Literal["new", "changed", "unchanged", "removed", "left out"]
"""What is left out is not live, and stays so."""
STAYS = ("unchanged", "left out")
"""After these, readers see the same."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """`green` is a living version that already means the same (nothing to build), or None: build one."""

    table: str
    action: Action
    fingerprint: str | None
    blue: str | None = None
    green: str | None = None
    why: tuple[str, ...] = ()
    """Of a table that is unchanged although it is written differently, too."""
    records: int = 0
    bytes: int = 0
    minutes_estimate: float = 0.0
    reaches_back: bool = True
    history: str = ""
    reads: tuple[str, ...] = ()
    """The tables that it reads: they stand before it among the changes."""

    @property
    def builds(self) -> bool:
        return self.action in ("new", "changed") and self.green is None

    @property
    def stays(self) -> bool:
        """Whether it is written differently than it is live, and stays as it is live for a reason."""
        return self.action in STAYS and bool(self.why)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The same release and the same meanings give the same id, so planning again finds the same plan."""

    id: str
    release_before: int | None
    changes: tuple[Change, ...]
    definitions: dict[str, dict[str, Any]]
    created_at: str
    git_commit: str | None = None
    formula: int = FORMULA
    """By which formula its fingerprints were made out (`kinds/fingerprint.py`)."""

    @property
    def empty(self) -> bool:
        return all(change.action in STAYS for change in self.changes)

    @property
    def switched(self) -> tuple[Change, ...]:
        """The tables whose version changes hands: what is built, compared and gated."""
        return tuple(change for change in self.changes if change.action in ("new", "changed"))

    def to_json(self) -> dict[str, Any]:
        return {**json.loads(json.dumps(asdict(self))), "empty": self.empty}

    def refuse_outdated(self) -> None:
        """UsageError for one whose fingerprints are no longer those of versions."""
        if self.formula != FORMULA:
            raise UsageError(
                f"plan {self.id} cannot be used any more",
                "a former Twinlake made it, which named what definitions mean in another way",
                "make a new one with `twinlake plan`; versions that are built already are used again",
            )


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """Somebody has said that a plan shall not go live."""

    by: str
    at: str
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What people have said about a plan: who has made it first, and who has rejected it since."""

    proposed_by: str | None = None
    rejected: Rejected | None = None


class Plans:
    """`<lake>/plans`: for each plan its JSON, what people said of it, the diff of each table, the gate, and
    the report to read."""

    def __init__(self, lake: Location) -> None:
        self._folder = lake / "plans"

    def save(self, plan: Plan) -> None:
        self._store(self._file(plan.id, ".json"), plan.to_json())

    def load(self, plan: str) -> Plan:
        """NotFoundError for a plan that this lake never made, UsageError for what is not a plan's id."""
        found = self._read(self._file(plan, ".json"), Plan, {"formula": 1})
        if found is None:
            raise NotFoundError(f"there is no plan {plan}", "this lake never made one of that id",
                                "make one with `twinlake plan`")  # fmt: skip
        return found

    def newest(self) -> Plan | None:
        """The plan that was made last, None before the first."""
        newest = next(iter(self._ids()), None)
        return self.load(newest) if newest else None

    def newest_ones(self, limit: int) -> list[Plan]:
        """So many, the one that was made last first, without those whose files are damaged."""
        return list(self._whole(self._ids()[:limit]))

    def _whole(self, ids: Iterable[str]) -> Iterator[Plan]:
        for id in ids:
            try:
                yield self.load(id)
            except DamagedError as error:
                journal.error("a plan is left out", plan=id, why=str(error))

    def all(self) -> list[Plan]:
        """Every plan so far, in no order."""
        return [self.load(id) for id in self._ids()]

    def drop(self, kept: Collection[str], newest: int = KEEP) -> int:
        """Delete all but these plans and the newest ones, with what was found out about each; how many."""
        old = [plan for plan in self._ids()[newest:] if plan not in kept]
        for name in store.names(self._folder) if old else ():
            if name.partition(".")[0] in old:
                store.delete(self._folder / name)
        return len(old)

    def save_diff(self, plan: str, table: str, diff: Mapping[str, Any]) -> None:
        self._store(self._file(plan, f".diff.{table}.json"), diff)

    def diff(self, plan: str, table: str, shape: type[T]) -> T | None:
        """The table's last comparison for this plan, None before the first."""
        return self._read(self._file(plan, f".diff.{table}.json"), shape)

    def save_gate(self, plan: str, gate: Mapping[str, Any]) -> None:
        self._store(self._file(plan, ".gate.json"), gate)

    def gate(self, plan: str, shape: type[T]) -> T | None:
        """What the gate said last, None before it was asked."""
        return self._read(self._file(plan, ".gate.json"), shape)

    def gate_text(self, plan: str) -> str | None:
        """The same as JSON."""
        return _text(self._file(plan, ".gate.json"))

    def save_decided(self, plan: str, decided: Decided) -> None:
        self._store(self._file(plan, ".decided.json"), asdict(decided))

    def decided(self, plan: str) -> Decided:
        """What people have said about it; nothing where nobody has."""
        return self._read(self._file(plan, ".decided.json"), Decided) or Decided()

    def save_report(self, plan: str, page: str, compared: Sequence[Mapping[str, Any]]) -> Location:
        """The page, and `compared`: what it shows of each table's comparison, as data."""
        store.replace(self._file(plan, ".compared.json"), json.dumps(compared))
        file = self.report_file(plan)
        store.replace(file, page)
        return file

    def report(self, plan: str) -> str | None:
        """The page that a person reads of the plan, None before it is made."""
        return _text(self.report_file(plan))

    def compared(self, plan: str) -> str | None:
        """What the page shows of comparisons, as JSON; None before it is made."""
        return _text(self._file(plan, ".compared.json"))

    def analysed(self) -> dict[str, str]:
        """By its premises (`kinds/premises.py`), the fingerprint of each definition that plans know."""
        try:
            data = store.read_json(self._folder / _ANALYSED)
        except (FileNotFoundError, DamagedError):  # they are found out again
            return {}
        return data if isinstance(data, dict) else {}

    def save_analysed(self, found: Mapping[str, str]) -> None:
        """Adds these, as the newest; the oldest ones go."""
        known = self.analysed()
        if not found.keys() <= known.keys():
            store.replace(self._folder / _ANALYSED, json.dumps(newest(known, found), indent=1))

    def report_file(self, plan: str) -> Location:
        """Where the page is."""
        return self._file(plan, ".html")

    def _ids(self) -> list[str]:
        """The plan that was made last first."""
        names = (name for name in store.names(self._folder) if re.fullmatch(rf"{_ID}\.json", name))
        made = {name.removesuffix(".json"): store.stat(self._folder / name).modified_ns for name in names}
        return sorted(made, key=lambda id: made[id], reverse=True)

    def _file(self, plan: str, ending: str) -> Location:
        if not re.fullmatch(_ID, plan):
            raise UsageError(f"{plan!r} is not the id of a plan", "ids are 12 hexadecimal digits",
                             "take the id that `twinlake plan` printed")  # fmt: skip
        return self._folder / f"{plan}{ending}"

    def _store(self, file: Location, content: Mapping[str, Any]) -> None:
        store.replace(file, json.dumps(content, indent=2, sort_keys=True))

    def _read(self, file: Location, shape: type[T], older: Mapping[str, Any] = {}) -> T | None:
        try:
            return store.read_as(file, shape, older)
        except FileNotFoundError:
            return None


def _text(file: Location) -> str | None:
    try:
        return store.read_text(file)
    except FileNotFoundError:
        return None
