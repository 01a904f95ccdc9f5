"""Every promise of docs/guarantees.md names an invariant of the code, and tests that are there."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from tests.project import PROJECT
from twinlake.lake import invariants

PAGE = PROJECT / "docs" / "guarantees.md"
STATELESS = "no state: held by tests alone, "


def predicates() -> set[str]:
    found = inspect.getmembers(invariants, inspect.isfunction)
    mine = {name for name, one in found if one.__module__ == invariants.__name__ and name[0] != "_"}
    return mine - {"log_broken", "version_broken"}


def lines(page: str) -> list[list[str]]:
    """Promise, predicate and tests of each line of the first table, the tests from the last one."""
    tests = dict(_table(page, "held by"))
    return [
        [promise, predicate, tests.get(number, "")] for number, promise, predicate in _table(page, "promise")
    ]


def _table(page: str, heading: str) -> list[list[str]]:
    found = re.search(rf"\| \| {heading} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", page)
    assert found
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found[1].splitlines()]


def faults(page: str) -> list[str]:
    found = []
    for promise, predicate, held_by in lines(page):
        named = re.findall(r"`([^`]+)`", predicate)
        if (not named and len(predicate) <= len(STATELESS)) or not (named or predicate.startswith(STATELESS)):
            found.append(f"{promise}: no predicate, and no reason why")
        found += [f"{promise}: no predicate {name}" for name in named if name not in predicates()]
        tests = re.findall(r"`([^`]+)`", held_by)
        if not tests:
            found.append(f"{promise}: no test")
        found += [f"{promise}: no test {test}" for test in tests if not is_test(test)]
    return found


def is_test(node: str) -> bool:
    file, _, name = node.partition("::")
    path = PROJECT / file
    if not (file.startswith("tests/") and path.is_file()):
        return False
    return any(
        isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == name
        for one in ast.parse(path.read_text()).body
    )


def test_every_promise_names_an_invariant_and_tests_that_are_there() -> None:
    assert faults(PAGE.read_text()) == []


def test_every_invariant_is_behind_a_promise() -> None:
    named = {name for _, told, _ in lines(PAGE.read_text()) for name in re.findall(r"`([^`]+)`", told)}

    assert named == predicates()


@pytest.mark.parametrize(
    ("there", "planted", "fault"),
    [
        ("`verdicts_stand`", "`verdicts_fall`", "no predicate verdicts_fall"),
        ("`verdicts_stand`", "", "no predicate, and no reason why"),
        ("`verdicts_stand`", STATELESS, "no predicate, and no reason why"),
        ("::test_verdicts_do_not_depend_on_how_micro_batches_are_cut", "::test_gone", "no test tests/ingest"),
        ("tests/ingest/test_verdicts.py", "tests/ingest/test_gone.py", "no test tests/ingest/test_gone.py"),
    ],
)
def test_a_promise_that_nothing_holds_is_named(there: str, planted: str, fault: str) -> None:
    page = PAGE.read_text()
    assert there in page

    (found,) = faults(page.replace(there, planted, 1))

    assert found.startswith("Verdicts do not depend") and fault in found
