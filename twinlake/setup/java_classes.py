"""Compiles the project's few Java classes with the pinned Eclipse compiler, which runs without a JDK."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from twinlake.config.library import LIBRARY
from twinlake.setup.jars import JARS, JarError
from twinlake.setup.java import NoJava, find_java

SOURCES = LIBRARY
CLASSES = "classes"
JAR = "twinlake.jar"


def compile_classes(jars: Path, java_home: Path, sources: Path = SOURCES) -> Path:
    """All .java below folders named `java`, into `jars`/classes/twinlake.jar; its path. JarError tells what
    does not compile."""
    import pyspark

    folders = sorted({str(path) for path in sources.rglob("java") if path.is_dir()})
    spark = Path(pyspark.__file__).parent / "jars"
    class_path = ":".join(
        str(jar) for folder in (spark, jars / "spark") for jar in sorted(folder.glob("*.jar"))
    )
    (compiler,) = (jars / "compiler").glob("ecj-*.jar")
    made, part = jars / CLASSES, jars / f"{CLASSES}.part"
    shutil.rmtree(part, ignore_errors=True)
    command = [
        str(java_home / "bin" / "java"), "-jar", str(compiler), "-source", "17", "-target", "17",
        "-proc:none", "-nowarn", "-encoding", "UTF-8", "-cp", class_path, "-d", str(part), *folders,
    ]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise JarError(f"the Java classes of {', '.join(folders)} do not compile:\n{done.stdout}")
    jar = part / JAR  # Java shares classes of jars only, see class_archive.py
    with ZipFile(jar, "w") as packed:
        for file in sorted(part.rglob("*.class")):
            packed.write(file, file.relative_to(part))
    made.mkdir(exist_ok=True)
    jar.replace(made / JAR)
    shutil.rmtree(part)
    return made / JAR


def main() -> None:
    """Compiles all of them; part of `make jars`."""
    try:
        compile_classes(JARS, find_java(os.environ))
    except (JarError, NoJava) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
