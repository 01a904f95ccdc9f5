import hashlib
import os
import runpy
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.project import PROJECT
from twinlake.setup.jars import LIST, Artifact, JarError, fetch, read_list


def artifact(name: str, content: bytes) -> Artifact:
    return Artifact(
        set="spark", group="g", name=name, version="1", classifier="", extension="jar",
        sha256=hashlib.sha256(content).hexdigest(),
    )  # fmt: skip


def test_the_list_names_every_jar_once_with_a_checksum() -> None:
    artifacts = read_list(LIST.read_text())

    assert {artifact.set for artifact in artifacts} == {"spark", "kafka", "registry", "compiler"}
    places = [(artifact.set, artifact.file_name) for artifact in artifacts]
    assert len(set(places)) == len(places)


def test_the_list_pins_the_connector_and_its_token_provider_that_work_together() -> None:
    names = {artifact.file_name for artifact in read_list(LIST.read_text()) if artifact.set == "spark"}

    assert {
        "spark-sql-kafka-0-10_2.13-4.1.1.jar",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
        "kafka-clients-3.9.1.jar",
    } <= names


@pytest.mark.parametrize("line", ["spark g:n:1", "hadoop g:n:1 " + "0" * 64, "spark g:n " + "0" * 64])
def test_a_line_of_another_form_is_named(line: str) -> None:
    with pytest.raises(JarError, match="line 2"):
        read_list("# a comment\n" + line)


def test_jars_that_are_here_are_kept_without_asking_anyone_and_others_are_removed(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "a-1.jar").write_bytes(b"a")
    (tmp_path / "spark" / "a-0.jar").write_bytes(b"old")

    fetch([artifact("a", b"a")], tmp_path, java_home=Path("/nonexistent"))

    assert [path.name for path in (tmp_path / "spark").iterdir()] == ["a-1.jar"]


def test_a_damaged_jar_is_asked_for_again(tmp_path: Path) -> None:
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "a-1.jar").write_bytes(b"half")

    with pytest.raises(FileNotFoundError, match="java"):
        fetch([artifact("a", b"whole")], tmp_path, java_home=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("place", "packed", "source"),
    [
        (".jars/classes/twinlake.jar", "twinlake/java/twinlake.jar", "twinlake/java/A.java"),
        ("build/site", "twinlake/site", "docs/adr/index.md"),
    ],
)
def test_a_wheel_is_not_built_of_what_is_missing_or_older_than_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, packed: str, source: str
) -> None:
    stub = Mock(build_py=object, sdist=object)  # nothing else of a build is wanted
    for name in ("", ".command", ".command.build_py", ".command.sdist"):
        monkeypatch.setitem(sys.modules, f"setuptools{name}", stub)
    module = runpy.run_path(str(PROJECT / "setup.py"))
    (made,) = (one for one in module["ARTIFACTS"] if one.place == Path(place))
    made.found.__globals__["HERE"] = tmp_path

    with pytest.raises(SystemExit, match=f"{place} is not there: run `make wheel`"):
        made.found()
    for seconds, file in ((1, tmp_path / place), (2, tmp_path / source)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (seconds, seconds))
    with pytest.raises(SystemExit, match="older than its sources: run `make wheel`"):
        made.found()
    os.utime(tmp_path / place, (3, 3))
    assert made.found() == tmp_path / place
    (tmp_path / place).rename(tmp_path / "away")
    (tmp_path / packed).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "away").rename(tmp_path / packed)
    assert made.found() == tmp_path / packed  # of a source distribution
