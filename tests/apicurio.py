"""A real schema registry for tests: the part that `twinlake up` starts, on free ports, with its own store."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx

from tests.project import OURS
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services, Settings
from twinlake.services.folders import folders_of
from twinlake.services.part import Context
from twinlake.services.ports import Ports
from twinlake.services.registry import parts, url
from twinlake.topics.registry import Registry


class Apicurio:
    """One registry process; `wipe` starts it anew with an empty store behind the same address."""

    def __init__(self, home: Path) -> None:
        settings = Settings(home=home, in_project=OURS)
        (self._part,) = parts()
        ports = Ports(home / "ports.json")
        self._context = Context(
            settings=settings,
            folders=folders_of(settings),
            ports=ports,
            java_home=Path(),
            services=Services(),
        )
        self.url = url(ports["registry"])
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Apicurio:
        """Starts and returns once the registry answers."""
        assert self._part.command is not None
        self._part.prepare(self._context)
        out = self._context.settings.home / "registry.log"
        with out.open("ab") as log:
            arguments = self._part.command(self._context).arguments
            process = self._process = subprocess.Popen(arguments, stdout=log, stderr=log)

        def answers() -> str:
            assert process.poll() is None, out.read_text()
            return self._part.probe(self._context)

        unready = (httpx.HTTPError, ConnectionError)
        wait_for("the registry", answers, 120, every_s=0.1, unready=unready, remedy=f"see {out}")
        return self

    def stop(self) -> None:
        """Ends the process; what it stored stays."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def wipe(self) -> None:
        """What a lost disk does: the same address, no schema, ids from 1 on again."""
        self.stop()
        shutil.rmtree(self._context.folders.of("registry"))
        self.start()

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        """The next version of a subject; the id that the registry gave it."""
        return Registry(self.url).register(subject, schema)
