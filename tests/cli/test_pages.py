"""What `twinlake open` prints, and when it starts a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.cli import pages
from twinlake.cli.app import build_app
from twinlake.config.settings import Services, Settings


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def browse(url: str) -> bool:
        found.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    return found


def test_the_address_is_printed_and_opened_where_there_is_a_screen(
    home: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Services(
        console_url="http://127.0.0.1:1/", console_user="admin", airflow_url="http://127.0.0.1:2/"
    )
    known.save(Settings(home=home).services_file)

    done = CliRunner().invoke(build_app(), ["open"])
    assert done.stdout == "http://127.0.0.1:1/\n" and "sign in as admin" in done.stderr and opened == []

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(pages, "is_terminal", lambda: True)
    done = CliRunner().invoke(build_app(), ["open", "airflow"])
    assert done.stdout == "http://127.0.0.1:2/\n" and opened == ["http://127.0.0.1:2/"]

    monkeypatch.delenv("DISPLAY")
    CliRunner().invoke(build_app(), ["open"])
    assert len(opened) == 1


def test_what_does_not_run_and_what_is_no_page_is_said(home: Path, opened: list[str]) -> None:
    Services().save(Settings(home=home).services_file)

    away = CliRunner().invoke(build_app(), ["open", "airflow"]).exception
    assert isinstance(away, UnreachableError) and away.remedy == "start it: `twinlake up --only airflow`"
    wrong = CliRunner().invoke(build_app(), ["open", "kafka"]).exception
    assert isinstance(wrong, UsageError) and wrong.remedy == "one of console, airflow, docs"
    assert opened == []


def test_the_documentation_is_opened_where_it_is_and_named_where_it_has_to_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "CHECKOUT", tmp_path)

    away = CliRunner().invoke(build_app(), ["open", "docs"]).exception
    assert isinstance(away, UsageError) and away.remedy == "run `make site`"
    first = tmp_path / "build" / "site" / "index.html"
    first.parent.mkdir(parents=True)
    first.touch()
    assert CliRunner().invoke(build_app(), ["open", "docs"]).stdout == f"{first.as_uri()}\n"

    monkeypatch.setattr(pages, "CHECKOUT", None)
    monkeypatch.setattr(pages, "LIBRARY", tmp_path / "build")  # as a wheel has it
    assert CliRunner().invoke(build_app(), ["open", "docs"]).stdout == f"{first.as_uri()}\n"
