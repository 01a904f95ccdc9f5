"""What is found in a folder of tables; of what is wrong there: file, line, why, and what to do."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from tests.project import OURS, PROJECT, TABLES, project_in
from twinlake.base.errors import DefinitionError
from twinlake.base.from_source import FromSource
from twinlake.config.project import Project
from twinlake.definitions.loader import imported, load

IMPORTS = "from twinlake import Aggregate, Count, Events\n"


def events(name: str, called: str = "TABLE") -> str:
    return f"{called} = Events(name='{name}', inputs=('orders',), columns={{'id': 'order_id'}})\n"


Write = Callable[..., Project]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes files of a project's folder of tables; the project."""

    def made(root: Path | None = None, /, **files: str) -> Project:
        project = project_in(root or tmp_path)
        for name, text in files.items():
            file = project.tables / f"{name.replace('__in__', '/')}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(IMPORTS + text)
        return project

    return made


@pytest.mark.parametrize("edited", ["jobs/tables/pages.py", "jobs/tables/_shared.py", "names_of_shop.py"])
def test_a_file_means_what_is_in_it_now_even_of_the_same_size_and_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: str
) -> None:
    """As files are that were unpacked with a fixed time; whatever Python has kept of them."""
    monkeypatch.syspath_prepend(tmp_path)
    project = project_in(tmp_path)
    project.tables.mkdir(parents=True)
    texts = {
        "jobs/tables/pages.py": IMPORTS + events("one") + "from ._shared import TABLES\n",
        "jobs/tables/_shared.py": "from names_of_shop import NAME\n" + IMPORTS
        + f"TABLES = [{events('one_shared', 'a').partition('= ')[2].strip()}, "
        "Events(name=NAME, inputs=('orders',), columns={'id': 'order_id'})]\n",
        "names_of_shop.py": "NAME = 'one_named'\n",
    }  # fmt: skip

    def put(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (1_770_000_000, 1_770_000_000))

    for name, text in texts.items():
        put(name, text)
        py_compile.compile(str(tmp_path / name), doraise=True)
    assert names(project) == ["one", "one_shared", "one_named"]

    put(edited, texts[edited].replace("one", "two"))

    assert sum(name.startswith("two") for name in names(project)) == 1
    py_compile.compile(str(tmp_path / edited), doraise=True)
    put(edited, texts[edited])
    assert names(project) == ["one", "one_shared", "one_named"]


@pytest.mark.parametrize("text", ["", "import sys\nsys.meta_path.pop(0)\n"])
def test_imports_are_afterwards_as_they_were(
    write: Write, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    before = [*sys.meta_path]

    assert names(write(pages=text + events("pages"))) == ["pages"]

    assert sys.meta_path == before


def test_what_is_installed_below_a_project_is_compiled_once(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "env" / "site-packages"
    library.mkdir(parents=True)
    (library / "a_library_of_shop.py").write_text("NAME = 'pages'\n")
    monkeypatch.syspath_prepend(library)

    load(write(pages="import a_library_of_shop\n" + events("pages")))

    kinds = [type(sys.modules[name].__loader__) for name in ("a_library_of_shop", module_of(tmp_path))]
    assert kinds == [SourceFileLoader, FromSource]


def test_what_lies_below_a_linked_root_is_the_projects(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python knows the file by the path without the link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    project = write(tmp_path / "linked", pages="from name_of_linked import NAME\n" + events("pages"))
    beside = tmp_path / "real" / "name_of_linked.py"
    beside.write_text("NAME = 1\n")
    monkeypatch.syspath_prepend(beside.parent)

    assert names(project) == ["pages"]

    assert imported([project]) == [beside]
    beside.write_text("NAME = 1 / 0\n")
    assert "division by zero" in str(wrong(project))
    assert beside in imported([project])


@pytest.mark.parametrize("tables", [".tables", "jobs/../defs"])
def test_a_folder_of_tables_may_have_any_name(tmp_path: Path, tables: str) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "twinlake.toml").write_text(f"[project]\ntables = '{tables}'\n")
    project = Project.load(tmp_path)
    project.tables.mkdir(parents=True)
    (project.tables / "pages.py").write_text(IMPORTS + events("pages"))

    assert names(project) == ["pages"]

    assert isinstance(sys.modules[module_of(tmp_path)].__loader__, FromSource)


def module_of(folder: Path) -> str:
    """The module of `pages.py`, as it was imported below this folder."""
    (name,) = [
        name for name, module in sys.modules.items()
        if name.startswith("twinlake_tables_of_") and name.endswith(".pages")
        and Path(module.__file__ or "").is_relative_to(folder)
    ]  # fmt: skip
    return name


def wrong(project: Project) -> DefinitionError:
    """The one error of a project."""
    (error,) = load(project).wrong
    assert isinstance(error, DefinitionError)
    return error


def names(project: Project) -> list[str]:
    return [table.name for table in load(project).tables]


def test_every_table_and_each_of_several_is_found_in_the_order_of_files(write: Write) -> None:
    project = write(
        b=events("b"),
        a=events("a1", "ONE") + events("a2", "TWO") + "TABLES = (TWO, ONE)\n",
        finance__in__c=events("c"),
    )

    assert (names(project), load(project).wrong) == (["a2", "a1", "b", "c"], ())


def test_a_module_may_import_its_neighbours_and_one_with_an_underscore_defines_none(write: Write) -> None:
    project = write(
        _names="WHERE = 'amount > 1'\n",
        one=f"from ._names import WHERE\n{events('one')}",
        two=f"from . import one\nfrom .one import TABLE as ONE\n{events('two')}",
        finance__in__three=f"from ..one import TABLE as ONE\n{events('three')}",
    )

    assert (sorted(names(project)), load(project).wrong) == (["one", "three", "two"], ())


def test_a_table_that_a_neighbour_makes_is_found_where_it_is_named_and_once(write: Write) -> None:
    make = f"def make(name):\n    return {events('?').split(' = ')[1].strip()}\n".replace("'?'", "name")
    project = write(
        _make=make,
        a="from ._make import make\nTABLE = make('a')\n",
        b="from .a import TABLE\n",
        many="from ._make import make\nTABLES = [make(f'of_{n}') for n in ('x', 'y')]\n",
    )

    assert (names(project), load(project).wrong) == (["a", "of_x", "of_y"], ())


def test_two_projects_with_files_of_one_name_fit_one_process(write: Write, tmp_path: Path) -> None:
    first = write(tmp_path / "first", common="N = 'first'\n", one=f"from .common import N\n{events('x')}")
    second = write(tmp_path / "second", common="N = 'second'\n", one=f"from .common import N\n{events('y')}")

    assert [table.name for table in load(first, second).sound()] == ["x", "y"]


def test_a_folder_that_is_not_there_has_no_tables(tmp_path: Path) -> None:
    assert load(project_in(tmp_path)).sound() == ()


def test_two_tables_of_one_name_are_one_error_with_both_places_and_stop_no_other(write: Write) -> None:
    project = write(a=events("same"), b="\n" + events("Same"), c=events("c"))

    error = wrong(project)

    assert "2 definitions have this name" in error.why_text
    assert "a.py:2" in error.why_text and "b.py:3" in error.why_text
    assert names(project) == ["c"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a = (\n", 2, "was never closed"),
        ("\nTABLE = 1 / 0\n", 3, "division by zero"),
        ("import sys\nTABLE = sys.exit(0)\n", 3, "SystemExit: 0"),
        ("class Skipped(BaseException): ...\nraise Skipped('x')\n", 3, "Skipped: x"),
        ("TABLE = Aggregate(name='odd', source='orders')\n", 2, "Aggregate has no field source, only name, "),
        ("TABLE = Aggregate(name='odd', key=('region',))\n", 2, "has no field key; did you mean keys?"),
        ("TABLE = Aggregate(name='odd')\n", 2, "Aggregate needs inputs, columns, "),
        (
            "TABLE = Aggregate(name='odd', inputs=('o',), columns={}, keys=(), measures={'n': Count})\n", 2,
            "measures['n'] is the class Count itself",
        ),
        ("from .none import TABLE\n", 2, "there is no neighbour none beside it"),
        ("from . import none\n", 2, "there is no neighbour none beside it"),
        ("from twinlake import Agregate\n", 2, "twinlake has no Agregate; did you mean Aggregate?"),
        ("from .right import TABEL\n", 2, "right has no TABEL; did you mean TABLE?"),
        ("TABLE = Agregate(name='odd')\n", 2, "there is no Agregate here; did you mean Aggregate?"),
        ("from .odd import TABLE\n", 2, "odd and what it imports import each other in a circle"),
        ("from jobs.nowhere import x\n", 2, "import a neighbour as `from . import name`"),
        ("\nTABLE = 'orders'\n", 3, "TABLE is a str, not a definition"),
        ("\nTABLES = 3\n", 3, "TABLES is a int, not a tuple of definitions"),
        ("import json\nTABLES = (json,)\n", 3, "TABLES has the module json in it"),
        ("\n" + events("odd", "TABEL"), 3, "TABEL is a definition that nobody finds"),
    ],
)  # fmt: skip
def test_a_module_that_is_wrong_is_reported_with_its_line_and_stops_no_other(
    write: Write, text: str, line: int, words: str
) -> None:
    project = write(odd=text, right=events("right"))

    error = wrong(project)

    assert (Path(error.file), error.line) == (project.tables / "odd.py", line)
    assert words in str(error) and error.remedy
    assert names(project) == ["right"]


def test_what_a_module_imports_is_wrong_where_it_is_and_of_the_table_that_imports_it(write: Write) -> None:
    project = write(_helper="X = (\n", odd="from ._helper import X\n" + events("odd"))

    error = wrong(project)

    assert (error.table, Path(error.file), error.line) == ("odd", project.tables / "_helper.py", 2)


def test_what_a_module_prints_is_no_part_of_what_a_command_prints(
    write: Write, capfd: pytest.CaptureFixture[str]
) -> None:
    project = write(one="print('hello')\n" + events("one"))

    found = names(project)

    printed = capfd.readouterr()
    assert (found, printed.out, printed.err) == (["one"], "", "hello\n")


def test_files_that_have_changed_are_read_as_they_are_now(write: Write) -> None:
    project = write(one=events("before"))
    before = names(project)
    write(one=events("afterwards"))

    assert (before, names(project)) == (["before"], ["afterwards"])


def test_this_project_has_its_three_tables() -> None:
    assert [table.name for table in load(OURS).sound()] == ["latest_order", "orders", "sales_per_region"]
    assert load(OURS).sound() == TABLES


@pytest.mark.parametrize("command", ["check", "plan"])
def test_the_commands_say_what_is_wrong_without_a_traceback(tmp_path: Path, command: str) -> None:
    for folder in ("schemas", "contracts"):
        (tmp_path / folder).symlink_to(PROJECT / folder)
    (tmp_path / "twinlake.toml").write_text("[project]\n")
    (tmp_path / "jobs" / "tables").mkdir(parents=True)
    (tmp_path / "jobs" / "tables" / "orders.py").write_text("\nTABLES = (\n")

    done = subprocess.run(
        [sys.executable, "-m", "twinlake", "--home", str(tmp_path / "home"), command],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    said = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in said, said
    assert "jobs/tables/orders.py:2" in said.replace("\n", ""), said


SQL = "SELECT order_id AS id\nFROM orders\n"


def test_a_file_of_sql_is_one_table_and_is_found_in_the_order_of_files(write: Write) -> None:
    project = write(a=events("a"), c=events("c"))
    for name in ("b", "_left_out"):
        (project.tables / f"{name}.sql").write_text(SQL)

    found = load(project)

    assert ([table.name for table in found.tables], found.wrong) == (["a", "b", "c"], ())
    assert {str(table.to_json()).replace(f"'{table.name}'", "") for table in found.tables} == {
        str(found.tables[0].to_json()).replace("'a'", "")
    }


def test_a_table_in_both_forms_is_none_and_both_places_are_named(write: Write) -> None:
    project = write(a=events("a"), b=events("b"))
    (project.tables / "a.sql").write_text(f"-- In SQL.\n{SQL}")

    error = wrong(project)

    assert names(project) == ["b"] and error.remedy == "remove one of them"
    assert "2 definitions have this name" in error.why_text
    assert "a.py:2, " in error.why_text and "a.sql:2" in error.why_text


def test_a_file_of_sql_that_is_wrong_hides_none_of_the_others(write: Write) -> None:
    project = write(b=events("b"))
    (project.tables / "a.sql").write_text("SELECT id\nFROM orders LIMIT 1\n")

    error = wrong(project)

    assert names(project) == ["b"] and (error.table, error.line, error.column) == ("a", 2, 13)
    assert error.file.endswith("a.sql")
