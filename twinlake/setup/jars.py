"""Fetches the pinned jars of jars.txt with the Apache Ivy that PySpark brings, and checks each one.

Those of a set that few need are in a list of their own: `python -m twinlake.setup.jars hdfs`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from twinlake.config.library import FETCH_JARS, jars_folder
from twinlake.setup.java import NoJava, find_java

JARS = jars_folder(os.environ)
LIST = Path(__file__).with_name("jars.txt")
SETS = ("spark", "kafka", "registry", "compiler")
MORE = {name: Path(__file__).with_name(f"jars_{name}.txt") for name in ("hdfs", "drivers")}
"""By set, its own list: of what only tests use."""
COMPLETE = ".complete"
"""Beside the jars of jars.txt, once all of them are there: what was in it then."""
_ATTEMPTS = 4
_ANY_SET = "|".join((*SETS, *MORE))
_SETTINGS = """<ivysettings><settings defaultResolver="central"/><resolvers>
<ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers></ivysettings>
"""


class JarError(Exception):
    """The jars could not be brought here; the text says which and what to do."""


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """One line of jars.txt."""

    set: str
    group: str
    name: str
    version: str
    classifier: str
    extension: str
    sha256: str

    @property
    def file_name(self) -> str:
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{tail}.{self.extension}"


def read_list(text: str) -> tuple[Artifact, ...]:
    """The artifacts of a jars.txt; a line of another form is an error that names it."""
    artifacts = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(
            rf"({_ANY_SET}) ([\w.-]+):([\w.-]+):([\w.-]+)(?::([\w.-]+):([\w.]+))? ([0-9a-f]{{64}})",
            line,
        )
        if not match:
            form = "set group:name:version[:classifier:extension] sha256"
            raise JarError(f"jars.txt line {number} is not '{form}'")
        of_set, group, name, version, classifier, extension, sha256 = match.groups()
        artifacts.append(
            Artifact(
                set=of_set, group=group, name=name, version=version, sha256=sha256,
                classifier=classifier or "", extension=extension or "jar",
            )
        )  # fmt: skip
    return tuple(artifacts)


def fetch(artifacts: Sequence[Artifact], target: Path, java_home: Path) -> None:
    """Brings every missing artifact to `target`/<set>; what is already there is kept."""
    target.mkdir(parents=True, exist_ok=True)
    missing = [artifact for artifact in artifacts if not _present(artifact, target)]
    _say(f">> {len(artifacts) - len(missing)} of {len(artifacts)} jars are here")
    work = target / ".ivy"
    for attempt in range(1, _ATTEMPTS + 1):
        if not missing:
            break
        if attempt > 1:
            _say(f"   {len(missing)} still missing, again in {3 * attempt} s")
            time.sleep(3 * attempt)
        # One run per set: the broker and Spark need different versions of the same jar.
        for of_set in (*SETS, *MORE):
            if wanted := [artifact for artifact in missing if artifact.set == of_set]:
                _retrieve(wanted, target, work, java_home)
        missing = [artifact for artifact in missing if not _present(artifact, target)]
    if missing:
        names = ", ".join(artifact.file_name for artifact in missing[:5])
        raise JarError(
            f"{len(missing)} jars could not be fetched ({names}{', ...' if len(missing) > 5 else ''}); "
            f"see {work / 'ivy.log'}.\nCheck the connection (JAVA_TOOL_OPTIONS sets a proxy for Java), "
            f"then {FETCH_JARS}; it goes on where it stopped."
        )
    _remove_others(artifacts, target)
    shutil.rmtree(work, ignore_errors=True)


def _retrieve(artifacts: Sequence[Artifact], target: Path, work: Path, java_home: Path) -> None:
    import pyspark

    work.mkdir(parents=True, exist_ok=True)
    (work / "settings.xml").write_text(_SETTINGS)
    (work / "ivy.xml").write_text(_ivy_file(artifacts))
    part = work / "retrieved"
    shutil.rmtree(part, ignore_errors=True)
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    command = [
        str(java_home / "bin" / "java"), "-jar", str(ivy), "-settings", str(work / "settings.xml"),
        "-cache", str(work / "cache"), "-ivy", str(work / "ivy.xml"),
        "-retrieve", f"{part}/[artifact]-[revision](-[classifier]).[ext]",
    ]  # fmt: skip
    done = 0
    with open(work / "ivy.log", "a") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            if match := re.search(r"\[SUCCESSFUL \] \S+?#([\w.-]+);([\w.-]+)!", line):
                done += 1
                _say(f"   {artifacts[0].set} [{done}/{len(artifacts)}] {' '.join(match.groups())}")
            elif match := re.search(r"downloading \S+/(\S+-all\.tar\.gz)", line):
                _say(f"   {match.group(1)} (about 150 MB) ...")
        process.wait()
    for artifact in artifacts:
        source = part / artifact.file_name
        if not source.is_file():
            continue
        if (found := _sha256(source)) != artifact.sha256:
            shutil.rmtree(work / "cache" / artifact.group / artifact.name, ignore_errors=True)
            _say(f"   {artifact.file_name}: SHA-256 is {found}, expected {artifact.sha256}; thrown away")
            continue
        _install(source, artifact, target)


def _ivy_file(artifacts: Iterable[Artifact]) -> str:
    lines = [
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
        '<info organisation="twinlake" module="jars"/>',
        '<configurations><conf name="default"/></configurations>',
        "<dependencies>",
    ]
    for a in artifacts:
        lines.append(
            f"<dependency org={quoteattr(a.group)} name={quoteattr(a.name)} rev={quoteattr(a.version)} "
            'conf="default->*" transitive="false">'
        )
        if a.classifier:
            lines.append(
                f"<artifact name={quoteattr(a.name)} "
                f"type={quoteattr(a.extension)} ext={quoteattr(a.extension)} "
                f"m:classifier={quoteattr(a.classifier)}/>"
            )
        lines.append("</dependency>")
    return "\n".join([*lines, "</dependencies></ivy-module>", ""])


def _present(artifact: Artifact, target: Path) -> bool:
    if artifact.set == "registry":
        stamp = target / "registry" / ".sha256"
        return stamp.is_file() and stamp.read_text() == artifact.sha256
    path = target / artifact.set / artifact.file_name
    return path.is_file() and _sha256(path) == artifact.sha256


def _install(source: Path, artifact: Artifact, target: Path) -> None:
    if artifact.set == "registry":
        part = target / "registry.part"
        shutil.rmtree(part, ignore_errors=True)
        with tarfile.open(source) as archive:
            archive.extractall(part, filter="data")
        (part / ".sha256").write_text(artifact.sha256)
        shutil.rmtree(target / "registry", ignore_errors=True)
        part.rename(target / "registry")
        return
    place = target / artifact.set
    place.mkdir(parents=True, exist_ok=True)
    os.replace(source, place / artifact.file_name)


def _remove_others(artifacts: Sequence[Artifact], target: Path) -> None:
    for of_set in {artifact.set for artifact in artifacts} - {"registry"}:
        wanted = {artifact.file_name for artifact in artifacts if artifact.set == of_set}
        for path in (target / of_set).glob("*.jar"):
            if path.name not in wanted:
                path.unlink()


def _say(text: str) -> None:
    print(text, flush=True)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch_all(target: Path, java_home: Path) -> None:
    """Brings all jars of jars.txt to `target`, and leaves a mark that they are there."""
    text = LIST.read_text()
    fetch(read_list(text), target, java_home)
    (target / COMPLETE).write_text(text)


def are_here(target: Path) -> bool:
    """Whether all jars of jars.txt, as it is now, were brought to `target`."""
    mark = target / COMPLETE
    return mark.is_file() and mark.read_text() == LIST.read_text()


def main(asked: Sequence[str]) -> None:
    """Brings all jars here, `make jars`, or those of the named sets with a list of their own."""
    try:
        java_home = find_java(os.environ)
        for name in asked:
            fetch(read_list(MORE[name].read_text()), JARS, java_home)
        if not asked:
            fetch_all(JARS, java_home)
    except (JarError, NoJava) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
