"""What is told of definitions that cannot be read: file, line, what is wrong with it, and what to do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobs.tables import orders
from twinlake.base.errors import DefinitionError
from twinlake.config.settings import PROJECT
from twinlake.definitions import loader as module
from twinlake.definitions.loader import defined


def test_a_definition_file_that_cannot_be_imported_is_reported_with_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(name: str) -> None:
        compile("a = (\n", "jobs/tables/odd.py", "exec")

    monkeypatch.setattr(module.importlib, "import_module", broken)

    with pytest.raises(DefinitionError) as raised:
        defined()

    assert (raised.value.file, raised.value.line) == ("jobs/tables/odd.py", 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("source='orders'", "Aggregate has no field source, only name, inputs, "),
        ("key=('region',)", "Aggregate has no field key; did you mean keys?"),
        ("measures={'orders': 'count'}", "Aggregate needs inputs, columns, and keys"),
        (
            "inputs=('orders',), columns={}, keys=(), measures={'n': Count}",
            "measures['n'] is the class Count itself",
        ),
        ("inputs=sys.exit(0)", "SystemExit: 0"),
    ],
)
def test_a_field_that_is_none_or_missing_is_reported_with_its_line_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "tables" / "odd.py"
    source = (
        "import sys; from twinlake.kinds.aggregate import Aggregate\n"
        f"from twinlake.kinds.measures.counts import Count\nTABLE = Aggregate(name='odd', {text})\n"
    )

    def broken(name: str) -> None:
        exec(compile(source, str(file), "exec"), {})

    monkeypatch.setattr(module.importlib, "import_module", broken)

    with pytest.raises(DefinitionError) as raised:
        defined()

    assert (raised.value.file, raised.value.line) == (str(file), 3)
    assert words in str(raised.value) and raised.value.remedy


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (orders.TABLE, "TABLES is a Events, not a tuple of definitions"),
        (None, "TABLES is missing"),
        ([orders.TABLE], "TABLES is a list"),
        ((orders.TABLE, orders), "TABLES has the module jobs.tables.orders in it"),
        ((orders.TABLE, "sales"), "TABLES has a str in it"),
    ],
)
def test_a_list_that_is_none_is_reported_where_it_stands(
    monkeypatch: pytest.MonkeyPatch, listed: object, words: str
) -> None:
    monkeypatch.setattr(module.importlib, "import_module", lambda name: SimpleNamespace(TABLES=listed))

    with pytest.raises(DefinitionError, match=words) as raised:
        defined()

    assert (raised.value.file, raised.value.line) == ("jobs/tables/__init__.py", 6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("TABLES = (orders.TABLE)", "__init__.py:2"),
        ("TABLES = (", "__init__.py:2"),
        ("", "TABLES is missing"),
    ],
)
@pytest.mark.parametrize("command", ["check", "plan"])
def test_the_commands_say_so_without_a_traceback(tmp_path: Path, command: str, text: str, words: str) -> None:
    for folder in ("jobs", "twinlake", "schemas", "contracts"):
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    listed = f"from jobs.tables import orders\n{text}\n"
    (tmp_path / "jobs" / "tables" / "__init__.py").write_text(listed)

    done = subprocess.run(
        [sys.executable, "-m", "twinlake", "--home", str(tmp_path / "home"), command],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    said = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in said, said
    assert words in said.replace("\n", ""), said


def test_a_table_whose_file_is_gone_and_that_is_still_listed_is_named(tmp_path: Path) -> None:
    copy = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("jobs", "twinlake"):
        shutil.copytree(PROJECT / folder, copy / folder, ignore=ignored)
    (copy / "jobs" / "tables" / "latest_order.py").unlink()

    found = subprocess.run(
        [sys.executable, "-c", "from twinlake.definitions.loader import defined; defined()"],
        cwd=copy,
        capture_output=True,
        text=True,
    )

    assert "jobs/tables/latest_order.py is missing, and latest_order is listed" in found.stderr
    assert "circular import" not in found.stderr.splitlines()[-1]
