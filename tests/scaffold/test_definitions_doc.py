"""docs/definitions.md is made from the code, and has every kind, part and argument with what it means."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import pytest

import twinlake
from twinlake.kinds.all import KINDS
from twinlake.kinds.arguments import arguments, parts
from twinlake.kinds.join import Join
from twinlake.kinds.measures.measure import Measure
from twinlake.reference import definitions
from twinlake.reference.definitions import example, table

text = cache(definitions.text)
CLASSES = (*KINDS.values(), *parts(KINDS.values()))


def test_whatever_a_definition_is_written_with_has_a_section() -> None:
    """All that the face has of kinds, but measures, which have a page of their own."""
    public = {name: getattr(twinlake, name) for name in twinlake.__all__}
    written = {
        name
        for name, one in public.items()
        if one.__module__.startswith("twinlake.kinds")
        and not (isinstance(one, type) and issubclass(one, Measure))
    }

    titles = {line.lstrip("# ") for line in text().splitlines() if line.startswith(("## ", "### "))}

    assert written | {kind.__name__ for kind in KINDS.values()} <= titles


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_argument_is_listed_with_what_it_means(cls: type[Any]) -> None:
    stored = [one.name for one in fields(cls) if one.metadata.get("stored", True)]

    rows = [row.split(" | ") for row in [*table(cls)][2:]]

    assert [row[0].strip("| `") for row in rows] == stored
    assert all(len(row) == 4 and row[3].strip(" |") for row in rows)
    assert "\n".join(table(cls)) in text()


def test_an_argument_without_a_meaning_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Unexplained\.size has no text below it"):
        list(table(Unexplained))


def test_an_argument_has_the_meaning_of_the_nearest_class_that_says_it() -> None:
    found = {one.name: one.meaning for one in arguments(Nearer)}

    assert found == {"size": "How long it is.", "on": "Said nearer."}


def test_every_way_of_joining_is_named() -> None:
    joins = [kind for kind in KINDS.values() if issubclass(kind, Join)]
    for kind in joins:
        (how,) = [one.meaning for one in arguments(kind) if one.name == "how"]

        assert [one for one in kind.hows if f'"{one}"' not in how] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_a_kind_is_of_the_kind(kind: str) -> None:
    made: dict[str, Any] = {}
    exec(example(kind).removeprefix("```python\n").removesuffix("```"), made)

    assert made["TABLE"].kind == kind


@dataclass(frozen=True)
class Unexplained:
    size: str


@dataclass(frozen=True)
class _Farther:
    size: str
    """How long
    it is."""
    on: str
    """Said farther."""


@dataclass(frozen=True)
class Nearer(_Farther):
    on: str
    """Said nearer."""
