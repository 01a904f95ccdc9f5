"""The class archive that `make jars` has made: drivers map it, and do without one that does not fit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.project import PROJECT
from twinlake.config.settings import Settings
from twinlake.setup.class_archive import ArchiveError, make_archive
from twinlake.setup.java import find_java
from twinlake.spark import session as spark

DRIVER = """
import sys
from pathlib import Path
from twinlake.config.settings import Settings
from twinlake.spark.session import java_options, session
settings = Settings(home=Path(sys.argv[1]))
more = {"spark.driver.extraJavaOptions": f"{java_options(settings)} -Xlog:class+load:file={sys.argv[2]}"}
session(settings, memory="1g", more=more).sql("SELECT max(id) FROM range(9)").collect()
"""


def skip_without_archive(home: Path) -> None:
    if not Settings(home=home).class_archive.exists():
        pytest.skip("this Java has made no archive: `make jars` has told why")


@pytest.mark.faults
def test_a_driver_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    skip_without_archive(tmp_path)
    loaded = tmp_path / "classes.log"
    command = [sys.executable, "-c", DRIVER, str(tmp_path), str(loaded)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)

    lines = [line for line in loaded.read_text().splitlines() if " org.apache.spark." in line]
    mapped = [line for line in lines if "source: shared objects file (top)" in line]
    read = [line for line in lines if "source: file:" in line]
    assert len(mapped) > 4_000 > 40 * len(read)


@pytest.mark.parametrize("spoil", [lambda archive: archive.write_bytes(os.urandom(100_000)),
                                   lambda archive: archive.symlink_to(Settings(home=archive).class_archive)],
                         ids=["torn", "of other jars"])  # fmt: skip
def test_an_archive_that_does_not_fit_is_passed_over_without_a_word(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    skip_without_archive(tmp_path)
    settings = Settings(home=tmp_path, jars=tmp_path / "jars")
    settings.jars.mkdir()
    spoil(settings.class_archive)

    options = [option for option in spark.java_options(settings).split() if not option.startswith("-D")]
    done = subprocess.run(
        [str(find_java(os.environ) / "bin" / "java"), *options, "-cp", str(tmp_path), "-version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert any(str(settings.class_archive) in option for option in options)
    assert done.stdout == ""


def test_where_no_driver_starts_it_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    settings = Settings(home=tmp_path, jars=tmp_path / "jars")
    settings.jars.mkdir()

    with pytest.raises(ArchiveError, match="was not made"):
        make_archive(settings)
    assert not any(settings.jars.iterdir())
