"""What a part is told, before anything has been started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import OURS
from twinlake.config.settings import Services, Settings
from twinlake.services.folders import folders_of
from twinlake.services.part import Context
from twinlake.services.ports import Ports


@pytest.fixture
def context(tmp_path: Path) -> Context:
    settings = Settings(home=tmp_path, in_project=OURS)
    folders = folders_of(settings)
    folders.make()
    return Context(
        settings=settings, folders=folders, ports=Ports(folders.run / "ports.json"), java_home=Path("/java"),
        services=Services(),
    )  # fmt: skip
