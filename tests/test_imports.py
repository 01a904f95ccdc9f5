"""Imports point down: one table says what each room may import; no module imports itself by a detour."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from jobs.settings import PROJECT

_LAKE = {"ground", "topics", "kinds", "lake"}
_LAYERS = {"ingest", "speed", "batch", "reading"}

MAY_IMPORT: dict[str, set[str]] = {
    "ground": set(),
    "topics": {"ground"},
    "kinds": {"ground", "topics"},
    "tables": {"kinds"},
    "lake": {"ground", "topics", "kinds"},
    # the four never import each other: what one needs of another is handed in, or lies in the lake
    "ingest": _LAKE,
    "speed": _LAKE,
    "batch": _LAKE,
    "reading": _LAKE,
    "releases": _LAKE | _LAYERS,
    "changelog": _LAKE | {"batch"},
    "server": _LAKE | _LAYERS | {"releases", "changelog"},
    "commands": _LAKE
    | _LAYERS
    | {"releases", "changelog", "server", "tables", "setup", "parts", "supervise"},
    "setup": {"ground"},
    "parts": {"ground", "topics", "setup"},
    "supervise": {"ground", "topics", "setup", "parts"},
    "oracle": set(),
    "demo": {"ground", "topics", "client", "tables", "oracle", "parts", "supervise"},
    "dags": {"ground", "client"},
    "twinlake": {"ground", "client", "supervise"},
}
"""Room -> the rooms below it. Every room may import itself."""

HEAVY = {"pyspark", "py4j", "great_expectations", "delta", "airflow"}
LIGHT = {"ground", "tables", "oracle", "client"}
"""Rooms that Airflow or a newcomer's shell imports all the time: nothing heavy, not even in a function."""
SPARKS_EDGE = {"jobs.spark", "jobs.spark_watch"}
SLOW = {"numpy", "pyarrow", "polars", "authlib"}
"""What a command imports where it needs it: all of them wait for what is imported before."""
MAY_READ_THE_ENVIRONMENT = {"commands", "demo", "setup", "supervise", "parts", "dags", "twinlake"}


def room(module: str) -> str:
    """The room that a dotted module name is in; a plain file of `jobs/` is the ground."""
    names = module.split(".")
    if names[0] in ("dags", "twinlake"):
        return names[0]
    if module in ("jobs.server.client", "jobs.reading.client", "jobs.reading.wire"):
        return "client"  # what the servers' users need of them: Airflow's tasks, the commands, the demo
    if module == "jobs.__main__":
        return "commands"
    is_room = len(names) > 1 and (PROJECT / names[0] / names[1]).is_dir()
    return names[1] if is_room else "ground"


MAY_IMPORT["client"] = {"ground"}
for _above in ("server", "reading", "commands"):
    MAY_IMPORT[_above].add("client")


def modules() -> dict[str, Path]:
    """Every module by its dotted name."""
    found = {}
    for folder in ("jobs", "infra", "dags", "twinlake"):
        for path in sorted((PROJECT / folder).rglob("*.py")):
            found[".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> list[tuple[int, str]]:
    """(line, name) of each import, those inside functions and for types included."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                found.append((node.lineno, inside if inside in known else node.module))
    return found


def test_imports_point_down() -> None:
    known = modules()
    wrong = []
    for module, path in known.items():
        mine = room(module)
        for line, name in imports(path, known):
            if name.split(".")[0] not in ("jobs", "infra", "dags", "twinlake"):
                continue
            theirs = room(name)
            if theirs != mine and theirs not in MAY_IMPORT[mine]:
                wrong.append(f"{path.relative_to(PROJECT)}:{line}: {mine} may not import {name} ({theirs})")

    assert wrong == []


def test_no_module_imports_itself_by_a_detour() -> None:
    known = modules()
    graph = {
        module: {name for _, name in imports(path, known) if name in known and name != module}
        for module, path in known.items()
    }

    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")
    assert set(order) == set(known)


def test_light_rooms_import_nothing_heavy() -> None:
    known = modules()
    wrong = [
        f"{path.relative_to(PROJECT)}:{line}: {room(module)} may not import {name}"
        for module, path in known.items()
        if room(module) in LIGHT and module not in SPARKS_EDGE
        for line, name in imports(path, known)
        if name.split(".")[0] in HEAVY
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("loading", "heavy"),
    [
        (
            "from jobs import tables, settings, times; from jobs.server import client;"
            " from jobs.topics import topic; from jobs.kinds import all",
            HEAVY,
        ),
        ("from jobs.commands.app import build_app; build_app()", HEAVY | SLOW),
    ],
    ids=["what Airflow imports", "every command"],
)
def test_nothing_heavy_comes_along(loading: str, heavy: set[str]) -> None:
    code = f"{loading}\nimport sys; print([m for m in {sorted(heavy)} if m in sys.modules])"

    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT
    )

    assert found.stdout.strip() == "[]"


def test_only_the_top_reads_the_environment() -> None:
    """Settings are a parameter. Setting what a library reads at its import is no reading."""
    wrong = []
    for module, path in modules().items():
        if room(module) in MAY_READ_THE_ENVIRONMENT or module.endswith(".__main__"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            sets = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
            reads = isinstance(node, (ast.Call, ast.Subscript)) and not sets
            if reads and ast.unparse(node).startswith(("os.environ", "os.getenv")):
                wrong.append(f"{path.relative_to(PROJECT)}:{node.lineno}")

    assert wrong == []


@pytest.mark.parametrize("folder", ["jobs", "infra", "dags", "twinlake"])
def test_no_module_is_longer_than_400_lines(folder: str) -> None:
    long = {
        str(path.relative_to(PROJECT)): lines
        for path in (PROJECT / folder).rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 400
    }

    assert long == {}
