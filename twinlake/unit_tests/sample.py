"""Owns the records over which a definition is tried: a lake's, those of unit tests, or ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinlake.base.errors import NotFoundError
from twinlake.kinds.dependencies import upstream_topics
from twinlake.unit_tests.cases import ENDING, Case, cases
from twinlake.unit_tests.given import World
from twinlake.unit_tests.recording import newest_of
from twinlake.unit_tests.writing import case_of_records, first_records

MOST = 100
"""So many records of each topic of a lake."""
Files = Callable[[str], Sequence[str]]
"""The data files of the log of a topic; none where there is none."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Records of every topic that decides what a table shows, as a case without expectations."""

    origin: str
    """Where they are from, for a person."""
    case: Case


def of_lake(world: World, table: str, files: Files) -> Sample | None:
    """The newest records of the logs; None where they have none."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in upstream_topics(world.tables[table], world.tables):
        try:
            found[name] = newest_of(world.topics[name], files(name), MOST)
        except NotFoundError:
            continue
    if not found:
        return None
    counted = ", ".join(f"{len(one)} of {name}" for name, one in found.items())
    return Sample(origin=f"the newest records in the lake: {counted}", case=_written(world, table, found))


def of_cases(table: str, found: Sequence[Case]) -> Sample | None:
    """The records of a table's unit tests, one case after the other; None where they give none."""
    chosen = [case for case in found if case.table == table and not case.tables]
    records: dict[str, list[Any]] = {}
    for case in chosen:
        for topic, parts in case.records.items():
            records.setdefault(topic, []).extend(parts)
    if not records:
        return None
    first = chosen[0]
    many = f"{len(chosen)} unit tests, one after the other" if len(chosen) > 1 else "a unit test"
    case = Case(table=table, name="sample", part=first.part, records=records, tables={}, rows=[], late=None)
    return Sample(origin=f"the records of {many}", case=case)


def filled(world: World, table: str) -> Sample:
    """A few records with valid values of our own."""
    case = _written(world, table, first_records(world, table))
    return Sample(origin="records with values of our own: neither a lake nor a unit test has some", case=case)


def _written(world: World, table: str, records: Mapping[str, Sequence[Mapping[str, Any]]]) -> Case:
    file = Path(world.engine.folder) / f"{table}{ENDING}"
    file.write_text(case_of_records(records), encoding="utf-8")
    (case,) = cases(file, world.tables)
    return case
