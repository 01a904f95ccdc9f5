"""Puts what was made of the sources into distributions: the compiled Java classes, and the documentation.

`make wheel` makes both, with the pinned compiler and generator. All else of the package is in pyproject.toml.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Artifact:
    """What a distribution holds at `packed`; a checkout makes it at `place` of what `sources` finds."""

    place: Path
    packed: Path
    sources: tuple[str, ...]

    def found(self) -> Path:
        """That of the checkout, or of a source distribution."""
        made, packed = HERE / self.place, HERE / self.packed
        if made.exists():
            sources = (one for pattern in self.sources for one in HERE.glob(pattern))
            read = (one for one in sources if one.is_file() and one.suffix != ".pyc")
            newest = max((one.stat().st_mtime for one in read), default=0)
            if newest > made.stat().st_mtime:
                raise SystemExit(f"{self.place} is older than its sources: run `make wheel`")
            return made
        if packed.exists():
            return packed
        raise SystemExit(f"{self.place} is not there: run `make wheel`")

    def copy_into(self, folder: str) -> None:
        target = Path(folder) / self.packed
        target.parent.mkdir(parents=True, exist_ok=True)
        if (found := self.found()).is_dir():
            shutil.copytree(found, target, dirs_exist_ok=True)
        else:
            shutil.copy(found, target)

    def files(self, folder: str) -> Iterator[str]:
        """What `copy_into` writes there."""
        target = Path(folder) / self.packed
        found = self.found()
        below = (one for one in found.rglob("*") if one.is_file()) if found.is_dir() else (found,)
        return (str(target / one.relative_to(found)) for one in below)


ARTIFACTS = (
    Artifact(
        Path(".jars/classes/twinlake.jar"), Path("twinlake/java/twinlake.jar"), ("twinlake/java/**/*.java",)
    ),
    Artifact(Path("build/site"), Path("twinlake/site"), ("docs/**/*", "twinlake/base/version.py")),
)


class Build(build_py):
    """An editable install needs neither: a checkout has its own."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for made in ARTIFACTS:
                made.copy_into(self.build_lib)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        artifacts = () if self.editable_mode else ARTIFACTS
        more = (file for made in artifacts for file in made.files(self.build_lib))
        return [*super().get_outputs(include_bytecode), *more]


class Source(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        for made in ARTIFACTS:
            made.copy_into(base_dir)


setup(cmdclass={"build_py": Build, "sdist": Source})
