"""What docs/guarantees.md promises: by which predicate, and which tests hold it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.project import PROJECT

PAGE = PROJECT / "docs" / "guarantees.md"


@dataclass(frozen=True)
class Promise:
    number: str
    text: str
    predicate: str
    """As the page has it, or why there is none."""
    tests: tuple[str, ...]
    """`tests/a/test_b.py::test_c`."""


def promises(page: str) -> list[Promise]:
    """Those of the first table of a page, with the tests from its last one."""
    tests = dict(_table(page, "held by"))
    return [
        Promise(number, text, predicate, tuple(re.findall(r"`([^`]+)`", tests.get(number, ""))))
        for number, text, predicate in _table(page, "promise")
    ]


def _table(page: str, heading: str) -> list[list[str]]:
    found = re.search(rf"\| \| {heading} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", page)
    assert found
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found[1].splitlines()]
