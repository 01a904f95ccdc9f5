"""A Python that has Airflow and what Airflow needs, and nothing else: neither the project nor Spark.

Made of links to the packages of this environment, those that Airflow's requirements name, and theirs.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

OF_POSTGRES = ("psycopg2-binary", "asyncpg")
"""What Airflow's documentation has one install beside it for PostgreSQL."""


def airflow_alone(folder: Path, more: tuple[str, ...] = OF_POSTGRES) -> Path:
    """Makes the environment in `folder`; returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    for place, target in sorted(packages("apache-airflow", *more).items()):
        (site / place).symlink_to(target)
    return python


def packages(*names: str) -> dict[str, Path]:
    """The top-level files and folders of these distributions and of all that they require."""
    left, seen, found = [Requirement(name) for name in names], set(), {}
    while left:
        asked = left.pop()
        for extra in ("", *sorted(asked.extras)):
            known = (_plain(asked.name), extra)
            if known in seen:
                continue
            seen.add(known)
            try:
                one = distribution(asked.name)
            except PackageNotFoundError:  # a requirement of another platform
                continue
            found |= _top_level(one)
            for text in one.requires or ():
                needed = Requirement(text)
                if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                    left.append(needed)
    return found


def _top_level(one: Distribution) -> dict[str, Path]:
    root = Path(str(one.locate_file("")))
    names = {file.parts[0] for file in one.files or ()}
    return {name: root / name for name in names if name not in ("..", "__pycache__")}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
