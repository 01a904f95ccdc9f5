"""Imports point down: one table says what each part of the tree may import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.settings import PROJECT

NOUNS = {
    "contract", "contracts", "errors", "measure", "moment", "quote", "reason", "row", "run", "schema",
    "settings", "table", "topic", "version", "window_range",
}  # fmt: skip
EDGES = {"delta", "kafka", "registry", "spark", "client"}
DEFINITIONS = {"tables"}
TOP = {"commands", "server", "__main__"}

MAY_IMPORT: dict[str, set[str]] = {
    "nouns": {"nouns"},
    "definitions": {"nouns", "definitions"},
    "edges": {"nouns", "edges"},
    "verbs": {"nouns", "edges", "definitions", "verbs"},
    "top": {"nouns", "edges", "definitions", "verbs", "top", "infra"},
    "infra": {"nouns", "edges", "infra"},
    "oracle": {"oracle"},
    "demo": {"nouns", "edges", "definitions", "top", "infra", "demo", "oracle"},
    "dags": {"nouns", "definitions", "edges", "dags"},
}
ALSO = {("dags", "jobs.plan"): "a plan is data, and the approver reads its description"}
HEAVY = {"pyspark", "py4j", "great_expectations", "delta", "airflow"}


def _part(module: str) -> str:
    """The part of the tree that a dotted module name belongs to."""
    names = module.split(".")
    if names[0] == "infra" and names[1:2] in (["oracle"], ["demo"]):
        return names[1]
    if names[0] in ("infra", "dags"):
        return names[0]
    name = names[1] if len(names) > 1 else "nouns"
    for part, members in (("nouns", NOUNS), ("edges", EDGES), ("definitions", DEFINITIONS), ("top", TOP)):
        if name in members:
            return part
    return "verbs"


def _files() -> list[Path]:
    return sorted(path for folder in ("jobs", "infra", "dags") for path in (PROJECT / folder).rglob("*.py"))


def _imports(path: Path) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            single = node.module in ("jobs", "infra", "dags")
            found += [(node.lineno, f"{node.module}.{a.name}" if single else node.module) for a in node.names]
    return found


def test_imports_point_down() -> None:
    wrong = []
    for path in _files():
        module = ".".join(path.relative_to(PROJECT).with_suffix("").parts)
        part = _part(module)
        for line, name in _imports(path):
            ours = name.split(".")[0] in ("jobs", "infra", "dags")
            if ours and _part(name) not in MAY_IMPORT[part] and (part, name) not in ALSO:
                wrong.append(
                    f"{path.relative_to(PROJECT)}:{line}: {part} may not import {name} ({_part(name)})"
                )
            if part in ("nouns", "definitions", "oracle") and name.split(".")[0] in HEAVY:
                wrong.append(f"{path.relative_to(PROJECT)}:{line}: {part} may not import {name}")

    assert wrong == []


@pytest.mark.parametrize("modules", ["jobs.tables, jobs.topic, jobs.settings, jobs.contracts, jobs.client"])
def test_what_airflow_imports_brings_no_spark(modules: str) -> None:
    code = f"import {modules}, sys; print([m for m in {sorted(HEAVY)} if m in sys.modules])"

    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT
    )

    assert found.stdout.strip() == "[]"


def test_only_the_top_reads_the_environment() -> None:
    """Settings are a parameter. Setting what a library reads at its import is no reading."""
    wrong = []
    for path in _files():
        module = ".".join(path.relative_to(PROJECT).with_suffix("").parts)
        if _part(module) not in ("nouns", "definitions", "verbs"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            sets = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
            reads = isinstance(node, (ast.Call, ast.Subscript)) and not sets
            if reads and ast.unparse(node).startswith(("os.environ", "os.getenv")):
                wrong.append(f"{path.relative_to(PROJECT)}:{node.lineno}")

    assert wrong == []
