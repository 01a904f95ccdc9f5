"""A home with a plan, and the command line against a lake server that has every answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.cli.answers import PLAN, Answers
from twinlake.base.job import Asker
from twinlake.cli.app import build_app
from twinlake.config.settings import Services, Settings
from twinlake.lake import formats
from twinlake.lake.catalog.plans import Plans
from twinlake.server.client import LakeClient


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings = Settings(home=tmp_path)
    Services(api_url="http://lake", sql_url="http://sql").save(settings.services_file)
    formats.acquire(settings.lake)
    Plans(settings.lake).save(PLAN)
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command writes the project into the environment, for what it starts: it is put back."""
    for name in ("TWINLAKE_PROJECT", "TWINLAKE_HOME"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)


@pytest.fixture
def twinlake(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`twinlake(answers, "verify", "t")`: one command against these answers."""

    def run(answers: Answers, *arguments: str, input: str | None = None) -> Result:
        client = LakeClient("http://lake", "token", httpx.MockTransport(answers))

        def of(services: Services, asker: Asker, timeout_s: float, **more: object) -> LakeClient:
            answers.askers.append(asker)
            return client

        monkeypatch.setattr(LakeClient, "of", staticmethod(of))
        return CliRunner().invoke(build_app(), list(arguments), input=input)

    return run
