"""The public face: every name is there, costs nothing until it is used, and has one version."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version

import pytest

import twinlake
from tests.project import PROJECT
from twinlake.base.version import VERSION
from twinlake.kinds.all import KINDS
from twinlake.kinds.measures.all import MEASURES


def test_every_kind_and_every_measure_is_public() -> None:
    own = {one.__name__ for one in (*KINDS.values(), *MEASURES.values())}

    assert own | {
        "Explode",
        "Hopping",
        "Snapshot",
        "SourcePlace",
        "Store",
        "TwinlakeError",
        "Tumbling",
        "metadata",
        "mirror",
        "read",
        "read_batches",
    } == {*twinlake.__all__}
    assert {name: getattr(twinlake, name).__name__ for name in twinlake.__all__} == {
        name: name for name in twinlake.__all__
    }


def test_what_a_type_checker_sees_is_what_a_program_gets() -> None:
    text = (PROJECT / "twinlake" / "__init__.py").read_text()

    seen = {name: place for place, name in re.findall(r"    from (\S+) import (\w+) as \2", text)}

    assert seen == {name: f"twinlake.{place}" for place, names in twinlake._PLACES.items() for name in names}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'twinlake' has no attribute 'Agregate'"):
        _ = twinlake.Agregate


def test_to_import_it_loads_no_other_module() -> None:
    code = "import sys; before = {*sys.modules}; import twinlake; print(sorted({*sys.modules} - before))"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )

    assert "'twinlake'" in done.stdout and "twinlake." not in done.stdout, done.stdout


def test_there_is_one_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "twinlake", "--version"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    declared = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]

    assert done.stdout == f"twinlake {VERSION}\n"
    assert twinlake.__version__ == VERSION == version("twinlake") and "version" not in declared
