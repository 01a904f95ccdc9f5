"""Settings and services.json."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from jobs.errors import UnreachableError, UsageError
from jobs.settings import Services, Settings


def test_services_come_back_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    services = Services(bootstrap_servers="127.0.0.1:9092", api_token="secret")

    services.save(settings.services_file)

    assert settings.services() == services
    assert stat.S_IMODE(settings.services_file.stat().st_mode) == 0o600


def test_nothing_started_is_not_reachable(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="twinlake up"):
        Settings(home=tmp_path).services()


def test_a_state_folder_that_others_would_read_otherwise_is_refused() -> None:
    with pytest.raises(UsageError, match="% in its path"):
        Settings.of({"TWINLAKE_HOME": "/tmp/a%20b"})
