"""Services of a project of their own, whose alarms go to a test's receiver, and a record of their metrics."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.alarms.test_receivers import Hook
from tests.faults.twinlake import Twinlake
from tests.metrics.recording import Fires, Recorder
from tests.processes import of_home
from tests.project import PROJECT, project_in
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Settings

WAIT_S = 240.0
SERVICES = "broker,registry,lake,sql,alarms"


class Platform(Twinlake):
    """Commands of `twinlake`, what the receiver has heard, and the record."""

    def __init__(self, home: Path, project: Path, receiver: Hook) -> None:
        super().__init__(home)
        self.settings = Settings(home=home, in_project=project_in(project))
        self.project, self.receiver = project, receiver
        self.recorder = Recorder({}, ("", ""))

    def __call__(self, *arguments: str) -> None:
        self.out(*arguments)

    def out(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """However it ends."""
        command = [sys.executable, "-m", "twinlake", *arguments]
        environ = {**os.environ, "TWINLAKE_HOME": str(self.settings.home)}
        return subprocess.run(
            command, capture_output=True, text=True, timeout=500, env=environ, cwd=self.project
        )

    def record(self) -> None:
        """From now on."""
        services = self.settings.services()
        targets = {"lake": services.lake_metrics_url, "sql": services.sql_metrics_url}
        self.recorder = Recorder(targets, (services.metrics_user, services.metrics_password))
        self.recorder.start()

    def recorded(self, what: str, *fires: Fires) -> None:
        """Waits until the record has each of them for as long as its rule asks for."""
        self.until(what, lambda: all(one.is_in([*self.recorder.moments]) for one in fires))

    def heard(self, event: str, kind: str, title: str = "") -> list[dict[str, Any]]:
        return [
            body for _, body in self.receiver.sent
            if (body["event"], body["kind"]) == (event, kind) and title in ("", body["title"])
        ]  # fmt: skip

    def until(self, what: str, true: Callable[[], Any]) -> None:
        wait_for(what, lambda: true() or None, WAIT_S, every_s=0.1)

    def until_heard(self, event: str, kind: str, title: str = "") -> dict[str, Any]:
        self.until(f"{event} {kind} {title}", lambda: self.heard(event, kind, title))
        return self.heard(event, kind, title)[0]


Of = TypeVar("Of", bound=Platform)


@contextmanager
def running(made: Of, settings: str) -> Iterator[Of]:
    """Inside, the services run by these settings and are recorded; afterwards none of them is left."""
    made.settings.file.write_text(settings)
    try:
        made("up", "--only", SERVICES)
        made.record()
        yield made
    finally:
        made.recorder.stop()
        made("down")
    assert of_home(made.settings.home) == []


def copy_of_ours(folder: Path) -> Path:
    """This project, for a test to change."""
    folder.mkdir()
    for name in ("contracts", "jobs", "schemas"):
        shutil.copytree(PROJECT / name, folder / name)
    for name in ("twinlake.toml", "records.py"):
        shutil.copy(PROJECT / name, folder / name)
    return folder
