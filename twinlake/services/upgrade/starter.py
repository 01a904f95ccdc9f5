"""Starter: which Python and which version of Twinlake started the services, and how to have it start them
again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from twinlake.base.files import SECRET, replace_file
from twinlake.base.version import VERSION
from twinlake.config.library import IMPORTABLE
from twinlake.config.settings import Settings
from twinlake.services.folders import Folders

_ASK_S = 60.0
_SHOWN = "from twinlake.base.version import VERSION; print(VERSION)"


@dataclass(frozen=True, kw_only=True)
class Starter:
    """`path` is where that Python has Twinlake from, where it is not installed in it."""

    python: str = ""
    version: str = ""
    path: str = ""

    def save(self, folders: Folders) -> None:
        replace_file(_file(folders), json.dumps(asdict(self)), SECRET)

    def is_there(self) -> bool:
        """Whether that Python still has that version."""
        if not self.python or not self.version or not Path(self.python).exists():
            return False
        try:
            done = subprocess.run(
                [self.python, "-P", "-c", _SHOWN], env=self._environ(os.environ), cwd="/",
                capture_output=True, text=True, timeout=_ASK_S,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0 and done.stdout.strip() == self.version

    def up(
        self, settings: Settings, services: Sequence[str], environ: Mapping[str, str],
        say: Callable[[str], None],
    ) -> bool:  # fmt: skip
        """`twinlake up` of that version; whether it succeeded. What it says is passed on."""
        only = ("--only", ",".join(services)) if services else ()
        with subprocess.Popen(
            [self.python, "-P", "-m", "twinlake", "--home", str(settings.home), "--project",
             str(settings.project.root), "up", *only],
            env=self._environ(environ), cwd=settings.project.root, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as running:  # fmt: skip
            for line in running.stdout or ():
                say(f"  {line.rstrip()}")
        return running.returncode == 0

    def _environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in environ.items() if name != "PYTHONPATH"}
        return {**kept, **({"PYTHONPATH": self.path} if self.path else {})}


def this() -> Starter:
    """The code that runs now."""
    return Starter(python=sys.executable, version=VERSION, path=IMPORTABLE.get("PYTHONPATH", ""))


def load(folders: Folders) -> Starter:
    """Who started the services last; one without a name where nobody wrote it down."""
    try:
        found = json.loads(_file(folders).read_text())
        return Starter(**{name: str(found[name]) for name in ("python", "version", "path")})
    except (OSError, ValueError, KeyError, TypeError):
        return Starter()


def _file(folders: Folders) -> Path:
    return folders.run / "started.json"
