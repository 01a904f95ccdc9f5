"""A machine on which nothing of Twinlake is: an empty HOME, no checkout, and all but one folder read-only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.project import PROJECT
from twinlake.setup.java import find_java

LONGEST_S = 600
ALONE = Path(__file__).with_name("alone.py")
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)
"""That of the system: the one of the tests is in the checkout, and has all packages."""
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
"""Where there is none, pip builds and installs, which takes longer."""
BUILT_FROM = ("twinlake", "pyproject.toml", "setup.py", "MANIFEST.in", "LICENSE", "README.md",
              ".jars/classes/twinlake.jar", "build/site")  # fmt: skip
_PASSED_ON = ("PIP_", "UV_", "SSL_CERT_", "REQUESTS_CA_", "CURL_CA_", "JAVA_TOOL_", "NETRC", "LANG", "LC_",
              "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")  # fmt: skip
"""How this machine reaches its package indexes and Maven Central; nothing else of its environment."""
_NOT_PASSED_ON = ("CONSTRAINT", "CACHE", "TARGET", "PREFIX", "PYTHON")
_USERS_FILES = {
    "PIP_CONFIG_FILE": (".config/pip/pip.conf", ".pip/pip.conf"),
    "UV_CONFIG_FILE": (".config/uv/uv.toml",),
    "NETRC": (".netrc",),
}
"""The same, where it is said in a file of a HOME that is not empty."""


class Machine:
    """`folder` alone can be written: a HOME, a `place` to stand in, a /tmp, an environment of Python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.place, self.tmp = (folder / name for name in ("home", "place", "tmp"))
        self.venv, self.tools = folder / "venv", folder / "tools"
        for made in (self.home, self.place, self.tmp, self.tools):
            made.mkdir(parents=True)
        self.tmp.chmod(0o1777)
        self.java = find_java(os.environ) / "bin" / "java"  # this machine's, wherever HOME has it
        self.uv = shutil.copy(UV, self.tools) if UV else None  # that of the tests is in the checkout

    def run(self, *command: str | Path, within: Path | None = None) -> subprocess.CompletedProcess[str]:
        """What a command does there; it must end with 0."""
        began = time.monotonic()
        done = subprocess.run(
            [*self._alone(within or self.place), *map(str, command)], env=self._environ(), cwd="/",
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_S,
        )  # fmt: skip
        shown = " ".join([Path(command[0]).name, *map(str, command[1:])])
        print(f"{time.monotonic() - began:6.1f} s  {shown[:80]}")  # is shown where the test fails
        assert done.returncode == 0, (command, done.returncode, done.stdout[-3000:], done.stderr[-3000:])
        assert "Traceback" not in done.stdout + done.stderr, (command, done.stdout, done.stderr)
        return done

    def install(self, what: str) -> None:
        """Into an empty environment, from the indexes that this machine is configured with, unconstrained."""
        self.run(BASE_PYTHON, "-m", "venv", self.venv)
        python = self.venv / "bin" / "python"
        if self.uv:
            self.run(self.uv, "pip", "install", "--python", python, what)
        else:
            self.run(python, "-m", "pip", "install", what)

    def twinlake(self, *arguments: str, within: Path | None = None) -> subprocess.CompletedProcess[str]:
        return self.run(self.venv / "bin" / "twinlake", *arguments, within=within)

    def left_in_tmp(self) -> list[str]:
        """What was made in /tmp, but for the way to `folder`, where that is in the /tmp of before."""
        way = self.folder.parts[2:3] if self.folder.is_relative_to("/tmp") else ()
        return sorted(path.name for path in self.tmp.iterdir() if path.name not in way)

    def processes(self) -> list[psutil.Process]:
        """Those that were started there, by their HOME, or by a path on their command line."""
        return list(self._processes())

    def _processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                home = process.environ().get("HOME", "")
                words = [home, process.cwd(), *process.cmdline()]
            except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
            if process.pid != os.getpid() and any(str(self.folder) in word for word in words):
                yield process

    def _alone(self, within: Path) -> list[str]:
        is_root = os.geteuid() == 0
        alone = [
            "unshare", *([] if is_root else ["--user", "--map-root-user"]), "--mount", "--",
            BASE_PYTHON, "-B", str(ALONE), "--write", str(self.folder), "--tmp", str(self.tmp),
            "--hide", str(PROJECT), "--within", str(within), "--",
        ]  # fmt: skip
        if is_root:
            return alone
        me = [f"--map-user={os.getuid()}", f"--map-group={os.getgid()}"]
        return [*alone, "unshare", "--user", *me, "--"]  # no longer its root

    def _environ(self) -> dict[str, str]:
        passed_on = {name: value for name, value in os.environ.items() if _is_passed_on(name.upper())}
        for variable, places in _USERS_FILES.items():
            for file in (Path.home() / place for place in places):
                if file.is_file():
                    passed_on.setdefault(variable, str(file))
        system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {
            **passed_on, "HOME": str(self.home), "JAVA_HOME": str(self.java.parents[1]),
            "PATH": f"{self.venv / 'bin'}:{system}",
        }  # fmt: skip


def _is_passed_on(name: str) -> bool:
    return name.startswith(_PASSED_ON) and not any(word in name for word in _NOT_PASSED_ON)


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout; what builds leave behind is in `folder`, and goes."""
    source = folder / "source"
    for name in BUILT_FROM:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(PROJECT / name, source / name)
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder))
    command = [*((UV, "build", "--out-dir", str(folder)) if UV else pip), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    shutil.rmtree(source)
    (wheel,) = folder.glob("*.whl")
    return wheel
