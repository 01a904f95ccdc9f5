"""Somebody who follows a tutorial: types its commands, writes its files, and sees what it says they see."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

import psutil

from tests.drivers import NODE
from tests.processes import has_ended
from tests.project import PROJECT
from tests.tutorials.browser import Browser
from tests.tutorials.kernel import Kernel
from tests.tutorials.shell import LONGEST_S, Done, Shell
from tests.tutorials.steps import Cell, Command, Edit, Picture, Press, Shown, Step, Write, of_page
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services

PICTURES = PROJECT / "docs" / "pictures"
AGAIN_S = 240
"""How long a command is typed again."""


class Reader:
    """Begins in an empty folder, with this checkout's `twinlake` and `python`, and without settings.

    `takes` says that the page's pictures are taken; else they are there already. With the file descriptor of
    a `terminal` what commands show goes there.
    """

    def __init__(self, folder: Path, *, takes: bool = False, terminal: int | None = None) -> None:
        self._profile, self._takes = folder / "browser", takes
        self.folder = folder / "reader"
        self.folder.mkdir()
        self._environ = {**environment(NODE), "npm_config_cache": str(folder / "npm")}
        self._open = ExitStack()
        self._shell = Shell(self.folder, folder / "notes", self._environ, terminal)
        self._open.callback(self._shell.close)
        self._kernel: Kernel | None = None
        self._browser: Browser | None = None
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves, and stops what a page that was not followed to its last line has started."""
        try:
            self.leave()
        finally:
            for data in self.folder.glob("*/.twinlake"):
                down = [sys.executable, "-m", "twinlake", "--home", str(data), "down"]
                print(
                    subprocess.run(down, cwd=data.parent, capture_output=True, text=True, timeout=LONGEST_S)
                )

    def follow(self, page: Path) -> None:
        """The whole page, and leaves; AssertionError where something is not as it says."""
        for step in of_page(page):
            self.do(step)
        self.leave()

    def do(self, step: Step) -> None:
        """One step; AssertionError where it is not as the page says."""
        began = time.monotonic()
        match step:
            case Command():
                self._shown = self._type(step).output
                print(f"{time.monotonic() - began:6.1f} s  {step.line[:90]}")  # is shown where the test fails
            case Write():
                file = self._file(step.path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(step.text)
            case Edit():
                file = self._file(step.path)
                file.write_text(step.of(file.read_text()))
            case Cell():
                if self._kernel is None:
                    self._kernel = Kernel(self._shell.folder, self._environ)
                    self._open.callback(self._kernel.close)
                self._shown = self._kernel.run(step.code)
            case Press():
                if self._browser is None:
                    self._browser = self._opened()
                    self._open.callback(self._browser.close)
                self._browser.press(step.label)
                print(f"{time.monotonic() - began:6.1f} s  {step.label}")
            case Picture():
                assert self._browser, "nothing was pressed before"
                if self._takes:
                    self._browser.picture(PICTURES / step.name)
                assert (PICTURES / step.name).is_file()
            case Shown():
                missing = step.missing(self._shown)
                assert missing is None, f"nothing is like {missing!r} in its place in:\n{self._shown}"

    def leave(self) -> None:
        """Closes the terminal, the notebook and the browser; what the page has started goes on."""
        self._open.close()

    def processes(self) -> list[psutil.Process]:
        """What was started from here and runs."""
        return [one for one in self._processes() if not has_ended(one)]

    def _type(self, command: Command) -> Done:
        if command.until is not None:
            once = partial(self._once, command, command.until)
            return wait_for(f"{command.line} to show {command.until.lines}", once, AGAIN_S)
        return self._run(command)

    def _once(self, command: Command, until: Shown) -> Done | None:
        done = self._run(command)
        return done if until.missing(done.output) is None else None

    def _run(self, command: Command) -> Done:
        done = self._shell.run(command.line)
        assert done.code == command.ends_with, f"{command.line} ended with {done.code}:\n{done.output}"
        assert "Traceback" not in done.output, f"{command.line}:\n{done.output}"
        return done

    def _opened(self) -> Browser:
        address = re.search(r"https?://\S+", self._shown)
        assert address, f"no address to open in:\n{self._shown}"
        services = Services.load(self._shell.folder / ".twinlake" / "services.json")
        return Browser(address[0], services, self._profile)

    def _file(self, path: str) -> Path:
        return self._shell.folder / path

    def _processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                words = [process.cwd(), *process.cmdline(), *process.environ().values()]
            except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
            if any(str(self.folder) in word for word in words):
                yield process


def environment(*programs: Path) -> dict[str, str]:
    """Of somebody who has this checkout's `twinlake`, and what is in the folders `programs`."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TWINLAKE")}
    return {
        **plain,
        "PATH": ":".join(map(str, (Path(sys.executable).parent, *programs, os.environ["PATH"]))),
        "PYTHONUNBUFFERED": "1",  # so that both streams are mixed as on a terminal
    }
