"""`twinlake check` keeps what it found, and finds out again what may have become another thing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.project import OURS, PROJECT, project_in
from tests.releases.test_derived import BUYERS, NEWEST, SPENT
from twinlake.definitions import premises as rested
from twinlake.definitions.loader import Loaded
from twinlake.kinds.definition import Place
from twinlake.kinds.kind import Kind
from twinlake.releases import check as module
from twinlake.releases.check import Report, check, never
from twinlake.releases.checked import Checked, Found, rests_on
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HELPER = "CONDITION = \"status <> 'cancelled'\"\n"
TABLE = """
from helper import CONDITION

from twinlake.kinds.latest import Latest

TABLE = Latest(
    name="latest_order", inputs=("orders",), where=CONDITION, keys=("customer",), order=("ordered_at",),
    columns={name: name for name in ("customer", "order_id", "region", "status", "ordered_at")}
    | {"amount": "CAST(1 / amount AS decimal(12,2))"},
    values=("order_id", "region", "status", "amount", "ordered_at"),
)
"""


class AskedError(Exception):
    """Spark was asked for."""


def no_spark() -> SparkSession:
    raise AskedError


class Project:
    """A project of one table, in files of its own; `check` knows what was found in it before."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder, folder / "cache" / "checked.json"
        for name in ("schemas", "contracts"):
            shutil.copytree(PROJECT / name, folder / name)
        for name, text in (("helper.py", HELPER), ("latest_order.py", TABLE)):
            (folder / name).write_text(text)

    def edit(self, file: str, old: str, new: str) -> None:
        text = (self.folder / file).read_text()
        assert old in text
        (self.folder / file).write_text(text.replace(old, new))

    def defined(self) -> tuple[Kind, ...]:
        sys.modules.pop("helper", None)
        found: dict[str, Any] = {}
        file = self.folder / "latest_order.py"
        exec(compile(file.read_text(), str(file), "exec"), found)
        return (found["TABLE"],)

    def check(self, start_spark: Callable[[], SparkSession]) -> Report:
        return check([project_in(self.folder)], start_spark, checked=Checked(self.kept))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    made = Project(tmp_path / "project")
    monkeypatch.syspath_prepend(str(made.folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(module, "load", lambda *_: Loaded(tables=made.defined()))
    yield made
    sys.modules.pop("helper", None)


@pytest.fixture
def known(project: Project, spark: SparkSession) -> Report:
    """What was found at first."""
    return project.check(lambda: spark)


def test_what_was_found_is_told_again_without_spark(project: Project, known: Report) -> None:
    again = project.check(no_spark)

    assert again.to_json() == known.to_json()
    assert {warning.line for warning in again.warnings} == {9} and len(again.tables) == 1


CHANGES: dict[str, Callable[[Project], None]] = {
    "its text": lambda project: project.edit("latest_order.py", "\nfrom twinlake", "\n\nfrom twinlake"),
    "what it imports": lambda project: project.edit("helper.py", "cancelled", "pending"),
    "a rule of its topic": lambda project: project.edit("contracts/orders.yaml", "minimum: 0", "minimum: 1"),
    "when its topic is late": lambda project: project.edit("contracts/orders.yaml", "3 hours", "4 hours"),
    "its topic's schema": lambda project: project.edit(
        "schemas/orders.v1.avsc", '"name": "region"', '"aliases": ["area"], "name": "region"'
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_it_is_found_out_again_when_this_has_changed(project: Project, known: Report, what: str) -> None:
    CHANGES[what](project)

    with pytest.raises(AskedError):
        project.check(no_spark)


def test_it_is_found_out_again_by_another_version_of_twinlake_or_spark(
    project: Project, known: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asks(**changed: Any) -> bool:
        with monkeypatch.context() as patched:
            for name, value in changed.items():
                patched.setattr(rested, name, value)
            _forget()
            try:
                project.check(no_spark)
            except AskedError:
                return True
            finally:
                _forget()
            return False

    source = project.folder / "source"
    (source / "kinds").mkdir(parents=True)
    (source / "kinds" / "kind.py").write_text("KIND = 1\n")

    assert not asks()
    assert asks(VERSION="9.9.9")
    assert asks(_CODE=source), "the text of Twinlake counts, too"
    assert asks(version=lambda package: "9.9.9")


def _forget() -> None:
    rested.code.cache_clear()
    rested.engine.cache_clear()


def test_it_is_found_out_again_when_what_it_reads_has_changed() -> None:
    topics = {"orders": load_topic("orders", OURS)}

    def of(*tables: Kind) -> str:
        keys: dict[str, str] = {}
        known = {one.name: one for one in tables}
        for one in tables:
            keys[one.name] = rests_on(one.bound(known), topics, known, keys)
        return keys["buyers"]

    same = of(SPENT, NEWEST, BUYERS)

    assert of(SPENT, NEWEST, BUYERS) == same
    assert of(replace(SPENT, where="amount > 1"), NEWEST, BUYERS) != same
    elsewhere = replace(BUYERS, place=Place(file="elsewhere.py", line=7))
    assert of(SPENT, NEWEST, elsewhere) != same


def test_what_spark_called_wrong_is_said_again_without_it(project: Project, spark: SparkSession) -> None:
    """To the witness the function is one of those that it does not know."""
    project.edit("latest_order.py", "CAST(1 / amount AS decimal(12,2))", "soundex(amount, 1)")
    before = project.check(never)
    by_spark = project.check(lambda: spark)

    after = project.check(never)

    assert before.left and len(by_spark.problems) == len(before.problems) + 1
    assert "soundex" in by_spark.problems[-1].what
    assert [one.what for one in after.problems] == [one.what for one in by_spark.problems]
    assert after.left == []


def test_a_file_that_is_none_is_found_out_again_and_replaced(project: Project, spark: SparkSession) -> None:
    project.kept.parent.mkdir()
    for text in ("", "[1]", '{"a": 1}'):
        project.kept.write_text(text)
        assert project.check(lambda: spark).tables

        assert project.check(no_spark).tables


def test_where_nobody_may_write_nothing_is_kept_and_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    checked = Checked(tmp_path / "file" / "checked.json")

    checked.put("key", Found(fingerprint="f", columns=()))
    checked.save()

    assert Checked(tmp_path / "file" / "checked.json").get("key") is None
