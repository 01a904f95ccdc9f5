"""Lets pytest find `<table>.test.yaml`: each case is a test. It is found by its entry point (`pytest11`).

`pytest --twinlake-full` runs them by Spark too. Until there is such a file, only this module is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from twinlake.config.settings import Settings
    from twinlake.unit_tests.cases import Case
    from twinlake.unit_tests.given import World
    from twinlake.unit_tests.project_tests import Collected

_ENDINGS = (".test.yaml", ".test.yml")
"""What is called by the second is wrong, and says so."""
_FULL = "--twinlake-full"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("twinlake")
    group.addoption(_FULL, action="store_true", help="run unit tests of definitions by Spark, too")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Those of a project that lie among its definitions."""
    if not file_path.name.endswith(_ENDINGS):
        return None
    settings = _settings(file_path.parent)
    if settings is None or not file_path.is_relative_to(settings.project.tables):
        return None
    return _File.from_parent(parent, path=file_path, settings=settings)


def _settings(folder: Path) -> Settings | None:
    from twinlake.base.errors import UsageError
    from twinlake.config.project import Project
    from twinlake.config.settings import Settings

    try:
        found = Project.find(folder)
        return None if found is None else Settings.of({**os.environ, "TWINLAKE_PROJECT": str(found.root)})
    except UsageError:
        return None


class _File(pytest.File):
    """The file of one table."""

    def __init__(self, *, settings: Settings, **more: Any) -> None:
        super().__init__(**more)
        self.settings = settings
        self._collected: Collected | None = None
        self._world: Any = None

    def collect(self) -> Iterator[pytest.Item]:
        from twinlake.unit_tests.project_tests import collect

        self._collected = collect(self.settings.sources, (), [self.path])
        for number, error in enumerate(self._collected.wrong, start=1):
            yield _Wrong.from_parent(self, name=f"file {number}", error=error)  # and other tests run
        for case in self._collected.cases:
            yield _Case.from_parent(self, name=case.name, case=case)

    def world(self) -> World:
        """Opened by the first of its cases that runs."""
        from twinlake.unit_tests.project_tests import opened

        if self._world is None:
            assert self._collected is not None
            self._world = opened(self._collected)
            self.opened: World = self._world.__enter__()
        return self.opened

    def teardown(self) -> None:
        if self._world is not None:
            self._world.__exit__(None, None, None)
            self._world = None


def _say(text: str) -> None:
    """Nobody listens: what a test says is what it has found."""


class _Failed(Exception):
    """Its text is what the test found."""


class _Found(pytest.Item):
    """What a file has."""

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from twinlake.base.errors import TwinlakeError

        if isinstance(excinfo.value, (_Failed, TwinlakeError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)


class _Wrong(_Found):
    """What is wrong with the file itself."""

    def __init__(self, *, error: Exception, **more: Any) -> None:
        super().__init__(**more)
        self.error = error

    def runtest(self) -> None:
        raise self.error

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name} can be read"


class _Case(_Found):
    """One case."""

    def __init__(self, *, case: Case, **more: Any) -> None:
        super().__init__(**more)
        self.case = case

    def runtest(self) -> None:
        from twinlake.unit_tests.running import run
        from twinlake.unit_tests.second import spark_of

        assert isinstance(self.parent, _File)
        settings = self.parent.settings
        full = bool(self.config.getoption(_FULL))
        outcome = run(self.parent.world(), self.case, lambda: spark_of(settings, os.environ, _say), full=full)
        if outcome.mistake is not None:
            raise outcome.mistake
        if outcome.failure:
            raise _Failed(outcome.failure)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.case.title
