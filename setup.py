"""Puts the compiled Java classes into distributions: `make jars` compiles them, with the pinned compiler.

Everything else about the package stands in pyproject.toml.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).parent
PLACE = Path("twinlake", "java", "twinlake.jar")


def compiled() -> Path:
    """The jar of the checkout, or of a source distribution."""
    of_checkout, packed = HERE / ".jars" / "classes" / "twinlake.jar", HERE / PLACE
    if of_checkout.is_file():
        sources = HERE.glob("twinlake/java/**/*.java")
        if any(one.stat().st_mtime > of_checkout.stat().st_mtime for one in sources):
            raise SystemExit("the Java classes are older than their sources: run `make jars`, then build")
        return of_checkout
    if packed.is_file():
        return packed
    raise SystemExit("the Java classes are not compiled: run `make jars`, then build again")


def copy_into(folder: str) -> None:
    target = Path(folder) / PLACE
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(compiled(), target)


class Build(build_py):
    """An editable install needs no jar: a checkout has its own."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            copy_into(self.build_lib)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        jar = [] if self.editable_mode else [str(Path(self.build_lib) / PLACE)]
        return [*super().get_outputs(include_bytecode), *jar]


class Source(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        copy_into(base_dir)


setup(cmdclass={"build_py": Build, "sdist": Source})
