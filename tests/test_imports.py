"""Imports point down: one table says what each room may import; no module imports itself by a detour."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.project import PROJECT

ORDER: tuple[tuple[str, ...], ...] = (
    ("base",),
    ("witness",),
    ("config",),
    ("spark",),
    ("metrics",),
    ("topics",),
    ("kinds",),
    ("definitions",),
    ("lake",),
    ("backup",),
    ("difference",),
    # the four never import each other: what one needs of another is handed in, or lies in the lake
    ("ingest", "speed", "batch", "reading"),
    ("releases", "changelog", "published", "webhooks", "lineage"),
    ("server",),
    ("setup",),
    ("services",),
    ("alarms",),
    ("console",),
    ("scaffold",),
    ("unit_tests",),
    ("cli",),
    ("reference",),  # it shows what the others have
    ("airflow",),
)
"""The rooms of `twinlake/`, from the ground up: each may import itself and those of the lines above it."""

MAY_IMPORT: dict[str, set[str]] = {
    room: {room, *(below for line in ORDER[:level] for below in line)}
    for level, line in enumerate(ORDER)
    for room in line
}
# the second engine shares no code with what it validates; who asks it, or keeps its answers, is named
ASKERS = {"definitions", "lake", "batch", "releases", "lineage", "unit_tests", "cli"}
for _room in MAY_IMPORT.keys() - {"witness"} - ASKERS:
    MAY_IMPORT[_room].discard("witness")
MAY_IMPORT["changelog"] -= {"ingest", "speed", "reading"}
MAY_IMPORT["published"] -= {"ingest", "speed", "reading"}
MAY_IMPORT["lineage"] = {"lineage", "base", "witness", "config", "topics", "kinds", "definitions", "lake"}
MAY_IMPORT["setup"] = {"setup", "base", "config", "spark"}
MAY_IMPORT["scaffold"] = {"scaffold", "face", "base", "config", "topics", "kinds", "definitions"}
MAY_IMPORT["unit_tests"] = {
    "unit_tests", "witness", "base", "config", "spark", "topics", "kinds", "definitions", "setup",
}  # fmt: skip
MAY_IMPORT["metrics"] = {"metrics", "base", "spark"}  # it serves what is handed to it
MAY_IMPORT["services"] = {"services", "base", "config", "spark", "metrics", "topics", "setup"}
# it asks the servers, and opens no file of the lake
MAY_IMPORT["console"] = {"console", "alarms", "client", "base", "config", "services", "metrics", "topics"}
MAY_IMPORT["alarms"] = {"alarms", "client", "base", "config", "services", "topics"}
# what the servers' users need of them: Airflow's tasks, the commands, the demo
MAY_IMPORT["client"] = {"client", "base", "config"}
MAY_IMPORT["face"] = {"face", "client", "base", "config", "services", "kinds"}
# to parse a DAG must be quick, and an Airflow elsewhere gets no more of the library than this
MAY_IMPORT["reference"] |= {"face", "client"}
MAY_IMPORT["airflow"] = {"airflow", "client", "base", "config"}
MAY_IMPORT["dags"] = {"dags", "airflow"}
MAY_IMPORT["jobs"] = {"jobs", "face", "kinds"}
MAY_IMPORT["oracle"] = {"oracle"}
for _above in ("server", "reading", "cli"):
    MAY_IMPORT[_above].add("client")

HEAVY = {"pyspark", "py4j", "great_expectations", "delta", "airflow"}
LIGHT = {"base", "witness", "config", "jobs", "oracle", "client", "alarms", "console"}
"""Rooms that Airflow or a newcomer's shell imports all the time, and the witness, whose engine is another:
nothing heavy, not even in a function."""
SLOW = {"numpy", "pyarrow", "polars", "authlib", "pydantic", "duckdb", "sqlglot"}
"""What a command imports where it needs it: all of them wait for what is imported before."""
MAY_READ_THE_ENVIRONMENT = {"cli", "setup", "services", "airflow", "face"}
CLIENTS = (
    "twinlake.server.client", "twinlake.server.job_models", "twinlake.server.release_models",
    "twinlake.server.job_fields", "twinlake.server.outcomes",
    "twinlake.reading.client", "twinlake.reading.quarantined", "twinlake.reading.server_address",
    "twinlake.reading.export_client", "twinlake.reading.facts_client", "twinlake.reading.wire",
    "twinlake.reading.typed_files",
)  # fmt: skip
FOLDERS = ("jobs", "dags", "twinlake", "tests/oracle")


def room(module: str) -> str:
    """The room that a dotted module name is in."""
    names = module.split(".")
    if module in ("jobs.lake_server", "jobs.sql_server"):
        return "cli"  # they start a server, as a command does
    if names[0] in ("dags", "jobs"):
        return names[0]
    if names[0] == "tests":
        return "oracle" if names[1:2] == ["oracle"] else "tests"
    if module in CLIENTS:
        return "client"
    if module == "twinlake.__main__":
        return "cli"
    return names[1] if len(names) > 1 and names[1] in MAY_IMPORT else "face"


def modules() -> dict[str, Path]:
    """Every module by its dotted name."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((PROJECT / folder).rglob("*.py")):
            # a template becomes a project's file, and is no module of the library
            if not path.name.startswith("test_") and "templates" not in path.parts:
                name = ".".join(path.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")
                found[name] = path
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
            if name.split(".")[0] not in ("jobs", "dags", "tests", "twinlake"):
                continue
            theirs = room(name)
            if theirs not in MAY_IMPORT[mine]:
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
        if room(module) in LIGHT
        for line, name in imports(path, known)
        if name.split(".")[0] in HEAVY
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("loading", "heavy"),
    [
        (
            "from jobs.tables import orders; from twinlake.base import times;"
            " from twinlake.config import settings;"
            " from twinlake.server import client, job_fields;"
            " from twinlake.topics import topic; from twinlake.kinds import all",
            HEAVY,
        ),
        # pydantic comes with the models of jobs, of which the options are made: 0.1 s
        ("from twinlake.cli.app import build_app; build_app()", (HEAVY | SLOW) - {"pydantic"}),
        ("from twinlake.console import __main__, app", HEAVY | {"pyarrow", "polars", "duckdb", "deltalake"}),
    ],
    ids=["what Airflow imports", "every command", "the console"],
)
def test_nothing_heavy_comes_along(loading: str, heavy: set[str]) -> None:
    code = f"{loading}\nimport sys; print([m for m in {sorted(heavy)} if m in sys.modules])"

    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PROJECT
    )

    assert found.stdout.strip() == "[]"


def test_only_the_top_reads_the_environment() -> None:
    """Settings are a parameter. Setting what a library reads at its import is not a reading."""
    wrong = []
    for module, path in modules().items():
        if room(module) in MAY_READ_THE_ENVIRONMENT or module.endswith((".__main__", ".pytest_plugin")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            sets = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
            reads = isinstance(node, (ast.Call, ast.Subscript)) and not sets
            if reads and ast.unparse(node).startswith(("os.environ", "os.getenv")):
                wrong.append(f"{path.relative_to(PROJECT)}:{node.lineno}")

    assert wrong == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_is_longer_than_400_lines(folder: str) -> None:
    long = {
        str(path.relative_to(PROJECT)): lines
        for path in (PROJECT / folder).rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 400
    }

    assert long == {}


def test_no_module_gives_a_name_a_second_meaning() -> None:
    """A constant that is assigned again loses what it held: no linter says so."""
    again = []
    for path in sorted((PROJECT / "twinlake").rglob("*.py")):
        names = Counter(
            target.id
            for node in ast.parse(path.read_text()).body
            for target in (node.targets if isinstance(node, ast.Assign) else ())
            if isinstance(target, ast.Name)
        )
        again += [f"{path.relative_to(PROJECT)}: {name}" for name, times in names.items() if times > 1]

    assert again == []


def test_few_modules_are_too_small_to_be_worth_a_file() -> None:
    small = [
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "twinlake").rglob("*.py")
        if path.name != "__init__.py" and "templates" not in path.parts
        # a kind is one module, and the witness states what it means in few lines
        if path.parts[-3:-1] != ("witness", "kinds")
        if path.parts[-3:-1] != ("airflow", "plugins")  # Airflow reads each file there by itself
        if len(path.read_text().splitlines()) < 40
    ]

    assert len(small) <= 15, small
