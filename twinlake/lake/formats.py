"""The lake's format: a number in `lake.json`, and the named steps that take an older lake on to today's.

Whoever opens a lake asks here first. The lake server takes an older one on before it reads anything else of
it; everybody else only reads, and waits for that. A change of what is on disk that older code would read
wrongly, or that today's code cannot read, is one more step at the end of `STEPS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import structlog

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import FormatError
from twinlake.base.location import Location
from twinlake.base.version import VERSION
from twinlake.lake.storage import store

journal = structlog.get_logger(__name__)
CONTENT = frozenset({"certificates", "changelogs", "logs", "plans", "releases", "runs", "tables", "topics"})
"""Folders of which a lake has one at least as soon as anything is in it."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """From one format to the next. Killed between any two writes of `change`, it is done again from its
    start: it must find its way over what it has written, and delete nothing before its replacement is there.
    """

    name: str
    change: Callable[[Location], None]
    needs: str
    """The first version of Twinlake that reads what it leaves."""


def _nothing(lake: Location) -> None:
    """The number alone is new."""


def _gain_columns(lake: Location) -> None:
    from twinlake.lake.catalog.certificates import gain_columns  # commands ask for the number alone

    gain_columns(lake)


STEPS: tuple[Step, ...] = (
    Step(name="number the format", change=_nothing, needs="0.1.0"),
    # which schemas those of before were made with is found out over the open logs: `made_with.store_schemas`
    Step(name="keep the schemas that versions were made with", change=_nothing, needs="0.1.0"),
    Step(name="keep the reasons of rollbacks", change=_nothing, needs="0.1.0"),
    # they are made out over the open logs as well: `new_fingerprints.store_fingerprints`
    Step(name="take contracts' rules out of fingerprints", change=_nothing, needs="0.1.0"),
    # of topics in JSON, which have no schema files; found out by `made_with.store_schemas`, too
    Step(name="keep the fields that versions were made with", change=_nothing, needs="0.1.0"),
    Step(name="keep what another engine found in certificates", change=_gain_columns, needs="0.1.0"),
    # what does not know where a log starts would take rows for wrong whose records are gone
    Step(name="let logs start later than their topics", change=_nothing, needs="0.1.0"),
    # versions of before are served until such of today's form are built beside them: `releases/tiled.py`
    Step(name="store hopping windows by tile", change=_nothing, needs="0.1.0"),
)
"""The step at index n takes a lake on from format n to n + 1."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """What `lake.json` says. `needs` is the version of Twinlake that reads the format."""

    id: str
    format: int = 0
    """0 before there were numbers."""
    needs: str = ""

    def save(self, lake: Location) -> None:
        store.replace(_file(lake), self.text())

    def text(self) -> str:
        return json.dumps({"id": self.id, "format": self.format, "needs": self.needs})


def known(lake: Location) -> Known | None:
    """None where no lake is yet; FormatError where one is that nobody can tell the format of."""
    try:
        text = store.read_text(_file(lake))
    except FileNotFoundError:
        # a folder that is empty holds nothing of a lake: a disk of its own may be mounted there
        if there := sorted(name for name in CONTENT if store.names(lake / name)):
            raise _damaged(lake, f"it is missing, and {', '.join(there)} are there") from None
        return None
    except UnicodeError:
        raise _damaged(lake, "it is not text") from None
    try:
        found: Any = json.loads(text)
    except ValueError:
        raise _damaged(lake, "it is not valid JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("id"), str) or not found["id"]:
        raise _damaged(lake, "it holds no id")
    number = found.get("format", 0)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise _damaged(lake, f"{number!r} is not the number of a format")
    return Known(id=found["id"], format=number, needs=str(found.get("needs", "")))


def acquire(lake: Location, steps: Sequence[Step] = STEPS) -> str:
    """The lake's id for life. Makes a new lake, takes an older one on step by step, refuses a newer one.

    For the lake server alone, which holds the lake's lock. Killed anywhere, the next call goes on.
    """
    found = known(lake)
    if found is None:
        made = Known(id=uuid4().hex, format=len(steps), needs=steps[-1].needs)
        store.make_folder(lake)
        store.put_if_absent(_file(lake), made.text())
        found = known(lake) or made
    refuse_newer(lake, found, len(steps))
    while found.format < len(steps):
        step = steps[found.format]
        step.change(lake)
        breakpoints.at(Point.BEFORE_FORMAT)
        found = replace(found, format=found.format + 1, needs=step.needs)
        found.save(lake)  # last: until then the step has not been made
        breakpoints.at(Point.AFTER_FORMAT)
        journal.info("the lake has a newer format now", step=step.name, format=found.format)
    return found.id


def refuse_other(lake: Location, steps: Sequence[Step] = STEPS) -> None:
    """FormatError for a lake that this code cannot read as it is. For everybody who only reads it."""
    found = known(lake)
    if found is None:
        return
    refuse_newer(lake, found, len(steps))
    if found.format < len(steps):
        raise FormatError(
            f"the lake {lake} has format {found.format}, and this Twinlake reads format {len(steps)}",
            f"its lake server has not made the step {steps[found.format].name!r} yet",
            "start it with `twinlake up`; it makes the step at its start, and loses nothing by it",
        )


def described(lake: Location, steps: Sequence[Step] = STEPS) -> str:
    """The lake's format for a person; FormatError for one that the lake server would refuse."""
    found = known(lake)
    if found is None:
        return f"there is none yet; it will have format {len(steps)}"
    refuse_newer(lake, found, len(steps))
    names = ", ".join(step.name for step in steps[found.format :])
    return f"format {found.format}" + (f"; at its next start the lake server will: {names}" if names else "")


def refuse_newer(lake: Location, found: Known, mine: int = len(STEPS)) -> None:
    """FormatError for a format that this code does not know."""
    if found.format > mine:
        raise FormatError(
            f"the lake {lake} has format {found.format}, and this Twinlake {VERSION} knows up to {mine}",
            "a newer version of Twinlake has written it",
            f"use Twinlake {found.needs or 'of then'} or newer; nothing in the lake was changed",
        )


def _damaged(lake: Location, why: str) -> FormatError:
    return FormatError(
        f"the format of the lake {lake} is not known",
        f"{_file(lake)} says it, and {why}",
        'put that file back from a backup. Without one, write {"id": "A NEW ID", "format": N} into it, with '
        "the N that `twinlake doctor` shows for a new lake in the version of Twinlake that wrote this one "
        "last; changelogs of the lake then need new topics, because theirs belong to the old id",
    )


def _file(lake: Location) -> Location:
    return lake / "lake.json"
