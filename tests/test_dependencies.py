"""What `twinlake/` imports is declared, nothing else is, and each extra is enough for what it promises."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.project import PROJECT

DECLARED = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
EXTRAS = DECLARED["optional-dependencies"]
BRINGING = ("server", "airflow", "hdfs", "otel")
PARTS = {"plain": DECLARED["dependencies"], **{name: EXTRAS[name] for name in BRINGING}}
"""By extra, what it brings; [all] brings the same, and [dev] what is no part of the library."""
SPREAD = {"airflow": "apache-airflow"}
"""What one distribution names and others hold: the one that is declared."""
NEVER_IMPORTED = {
    "pandas": "the limit of a version",
    "open-data-contract-standard": "a file of it is read",
    "tzdata": "its files are read",
}
LOADED_BY = {"pytest": "twinlake.unit_tests.pytest_plugin"}
"""A package that loads a module of ours by its entry point, and so is there: nobody needs it for Twinlake."""
PLAIN = """
import runpy, twinlake
for name in twinlake.__all__:
    getattr(twinlake, name)
from twinlake.kinds import all as kinds
from pathlib import Path
for file in sorted(Path("jobs/tables").glob("[!_]*.py")):
    table = runpy.run_path(str(file))["TABLE"]
    assert kinds.from_json(table.to_json()) == table
from twinlake.topics.topic import load_topic
from twinlake.config.project import Project
load_topic("orders", Project.load(Path.cwd()))
import twinlake.definitions.loader, twinlake.definitions.premises
from twinlake.cli.app import build_app
build_app()
"""
EVERY_MODULE = """
import importlib, pkgutil, {package} as package
for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if not found.name.startswith({but!r}):
        importlib.import_module(found.name)
"""
BUT = ("twinlake.airflow", "twinlake.lake.storage.hdfs_store", "twinlake.metrics.otlp", *LOADED_BY.values())
"""What the extras of these names bring, and what others load."""
WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
MISSING = {*%s}
sys.meta_path.insert(0, Missing())
"""


@cache
def distributions() -> dict[str, set[str]]:
    """By top-level module, the distributions that hold it."""
    return {name: set(map(canonicalize_name, held)) for name, held in packages_distributions().items()}


def names(requirements: Iterable[str]) -> set[str]:
    return {canonicalize_name(Requirement(one).name) for one in requirements}


def imported() -> dict[str, str]:
    """Each module of others that the library imports, within functions and for types too: one such file."""
    found = {}
    for path in sorted((PROJECT / "twinlake").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module or ""]
            for top in {module.partition(".")[0] for module in modules}:
                module = ".".join(path.relative_to(PROJECT).with_suffix("").parts)
                is_ours = top in ("twinlake", "jobs", "tests") or LOADED_BY.get(top) == module
                if top not in sys.stdlib_module_names and not is_ours:
                    found[top] = str(path.relative_to(PROJECT))
    return found


def with_theirs(requirements: Iterable[str]) -> set[str]:
    """The distributions, and all that they need in turn."""
    found: set[str] = set()
    left = [Requirement(one) for one in requirements]
    done = set()
    while left:
        one = left.pop()
        key = (canonicalize_name(one.name), *sorted(one.extras))
        if key in done:
            continue
        done.add(key)
        found.add(key[0])
        try:
            theirs = requires(one.name) or []
        except PackageNotFoundError:
            continue  # of another system or Python
        for text in theirs:
            need = Requirement(text)
            extras = ("", *one.extras)
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras):
                left.append(need)
    return found


def run(parts: tuple[str, ...], code: str, airflow_home: Path) -> subprocess.CompletedProcess[str]:
    """The code, as where these extras alone are installed."""
    brought = with_theirs(one for part in parts for one in PARTS[part])
    missing = sorted(module for module, held in distributions().items() if not held & {*brought, "twinlake"})
    return subprocess.run(
        [sys.executable, "-c", WITHOUT % json.dumps(missing) + code], cwd=PROJECT, timeout=300,
        env={**os.environ, "AIRFLOW_HOME": str(airflow_home)}, capture_output=True, text=True,
    )  # fmt: skip


def test_whatever_is_imported_is_declared() -> None:
    declared = set().union(*map(names, PARTS.values()))

    undeclared = {
        module: file
        for module, file in imported().items()
        if not declared & ({SPREAD[module]} if module in SPREAD else distributions().get(module, set()))
    }

    assert undeclared == {}


def test_whatever_is_declared_is_imported_or_has_a_reason() -> None:
    declared = set().union(*map(names, PARTS.values()))
    used = {
        one
        for module in imported()
        for one in ({SPREAD[module]} if module in SPREAD else distributions()[module])
    }

    assert declared - used == NEVER_IMPORTED.keys()


def test_all_is_each_of_them_in_the_version_that_the_tests_run_with() -> None:
    pinned = dict(line.split("==") for line in (PROJECT / "constraints.txt").read_text().splitlines())
    parts = [Requirement(one) for requirements in PARTS.values() for one in requirements]
    extras = {(canonicalize_name(one.name), extra) for one in parts for extra in one.extras}

    pins = [Requirement(one) for one in EXTRAS["all"]]

    assert {canonicalize_name(one.name): str(one.specifier) for one in pins} == {
        name: f"=={pinned[name]}" for name in {canonicalize_name(one.name) for one in parts}
    }
    assert {(canonicalize_name(one.name), extra) for one in pins for extra in one.extras} == extras


def test_a_version_that_is_fixed_is_the_one_that_the_tests_run_with() -> None:
    pinned = dict(line.split("==") for line in (PROJECT / "constraints.txt").read_text().splitlines())
    fixed = {
        canonicalize_name(one.name): one
        for one in (Requirement(text) for part in PARTS.values() for text in part)
        if one.specifier
    }

    assert {name for name, one in fixed.items() if not one.specifier.contains(pinned[name])} == set()


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        (("plain",), PLAIN),
        (("plain", "server"), EVERY_MODULE.format(package="twinlake", but=BUT)),
        (("plain", "airflow"), EVERY_MODULE.format(package="twinlake.airflow", but=())),
    ],
    ids=["plain", "server", "airflow"],
)
def test_an_extra_is_enough_for_what_it_promises(tmp_path: Path, parts: tuple[str, ...], code: str) -> None:
    done = run(parts, code, tmp_path)

    assert done.returncode == 0, done.stderr


def test_a_command_that_needs_an_extra_says_so(tmp_path: Path) -> None:
    for folder in ("contracts", "jobs", "schemas"):  # a project of its own: nothing of it is checked yet
        shutil.copytree(PROJECT / folder, tmp_path / "project" / folder)
    (tmp_path / "project" / "twinlake.toml").write_text((PROJECT / "twinlake.toml").read_text())
    arguments = ["", "--project", str(tmp_path / "project"), "check", "--full"]
    code = f"import sys; sys.argv[:] = {arguments}; from twinlake.__main__ import main; main()"

    done = run(("plain",), code, tmp_path)

    assert done.returncode == 2 and "is not installed" in done.stderr, done.stderr
    assert "pip install 'twinlake[all]'" in done.stderr
