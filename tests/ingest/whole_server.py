"""A whole lake server over a real broker, with a project of its own whose files a test may edit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.ingest.stage import Stage
from tests.project import PROJECT, project_in
from twinlake.base.job import Failed, Run
from twinlake.base.times import utc_now
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Settings
from twinlake.server.lake_server import LakeServer


class WholeServer:
    """It reads the stage's topic, whose files are the project's own of orders; `restart` is another process
    after one that was killed."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.name = stage.topic.name
        self.project = stage.settings.home.parent / "project"
        (self.project / "jobs" / "tables").mkdir(parents=True)
        self.add(self.name)
        self.jobs = 0
        self.server = self._started()

    def _started(self) -> LakeServer:
        settings = Settings(home=self.stage.settings.home, in_project=project_in(self.project))
        settings.lake.mkdir(parents=True, exist_ok=True)
        server = LakeServer(settings, utc_now, lambda settings: self.stage.spark)
        server.start()
        return server

    def restart(self) -> None:
        self.server.stop()
        self.server = self._started()

    def add(self, name: str) -> None:
        """The files of a topic like orders."""
        for folder in ("schemas", "contracts"):
            (self.project / folder).mkdir(exist_ok=True)
        shutil.copy(PROJECT / "schemas" / "orders.v1.avsc", self.project / "schemas" / f"{name}.v1.avsc")
        text = (PROJECT / "contracts" / "orders.yaml").read_text()
        self.contract(name).write_text(text.replace("name: orders", f"name: {name}"))

    def contract(self, name: str) -> Path:
        return self.project / "contracts" / f"{name}.yaml"

    def do(self, what: str, **params: Any) -> dict[str, Any]:
        """One job, done here and now; one that fails raises its error."""
        self.jobs += 1
        known = self.server.jobs._kinds[what]
        done = self.server._do(known, known.params.model_validate(params), Run(id=f"job{self.jobs}"))
        if isinstance(done, Failed):
            raise done.error
        return done.to_json()

    def topic(self, name: str | None = None) -> dict[str, Any]:
        """As `twinlake status` gets it."""
        return next(one for one in self.server.status()["topics"] if one["name"] == (name or self.name))

    def until(self, what: str, true: Callable[[], bool], seconds: float = 120) -> None:
        wait_for(what, lambda: True if true() else None, seconds, every_s=0.05, remedy=str(self.topic()))

    def until_records(self, count: int, name: str | None = None) -> None:
        self.until(f"{count} records", lambda: self.topic(name)["records"] == count)

    def close(self) -> None:
        self.server.stop()
