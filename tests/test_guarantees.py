"""Every promise of docs/guarantees.md names an invariant of the code, and tests that are there."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from tests.project import PROJECT
from tests.promises import PAGE, promises
from twinlake.lake import invariants

STATELESS = "no state: held by tests alone, "


def predicates() -> set[str]:
    found = inspect.getmembers(invariants, inspect.isfunction)
    mine = {name for name, one in found if one.__module__ == invariants.__name__ and name[0] != "_"}
    return mine - {"log_broken", "version_broken"}


def faults(page: str) -> list[str]:
    found = []
    for one in promises(page):
        named = re.findall(r"`([^`]+)`", one.predicate)
        why = one.predicate.removeprefix(STATELESS)
        if not named and (why == one.predicate or not why):
            found.append(f"{one.text}: no predicate, and no reason why")
        found += [f"{one.text}: no predicate {name}" for name in named if name not in predicates()]
        if not one.tests:
            found.append(f"{one.text}: no test")
        found += [f"{one.text}: no test {test}" for test in one.tests if not is_test(test)]
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
    told = [one.predicate for one in promises(PAGE.read_text())]
    named = {name for one in told for name in re.findall(r"`([^`]+)`", one)}

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
