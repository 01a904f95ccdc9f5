"""Keeper: one thread that starts one part, watches it, and starts it again when it ends."""

from __future__ import annotations

import subprocess
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from twinlake.base.errors import TwinlakeError
from twinlake.base.files import full_disk
from twinlake.base.job import Run
from twinlake.base.waiting import wait_for
from twinlake.services.folders import Folders
from twinlake.services.part import Context, Part
from twinlake.services.supervise import record
from twinlake.services.supervise.process import end, end_marked, identity_of, start
from twinlake.spark.jvm import EXIT_CODE

BACKOFF_S = (0, 0.5, 1, 2, 4, 8, 15, 30)
"""One that was steady is started again at once."""
AFTER_S = 60.0
"""So long a part lets those that it comes after have the cores; it does not need them."""
_STEADY_S = 60.0  # a part that lived this long is given the short pauses again
_TICK_S = 0.25
_PROBE_S = 0.5
_SHORTEN_S = 30.0
_TIDY_S, _TIDY_FIRST_S = 24 * 3600.0, 600.0  # once a day, but not while everything starts


def say(text: str) -> None:
    """Into the supervisor's log, where its disk has room."""
    with suppress(OSError):
        print(text, flush=True)


class Home(Protocol):
    """What a keeper asks of the supervisor; any of it from any thread."""

    folders: Folders
    environ: Mapping[str, str]
    ending: threading.Event
    """Set once; every keeper then returns and leaves its part running."""

    def is_ready(self, name: str) -> bool: ...

    def is_starting(self, name: str) -> bool:
        """Whether the part is wanted and not ready yet, and neither it nor what it needs is known to fail."""

    def context(self) -> Context:
        """What parts may know, as it is now."""

    def renew_ports(self, part: Part) -> None:
        """Called before a start: other ports where other processes hold the service's own."""


class Keeper(threading.Thread):
    """Keeps one part running until the supervisor ends."""

    def __init__(self, home: Home, part: Part) -> None:
        super().__init__(name=part.name, daemon=True)
        self._home = home
        self._folders = home.folders
        self.part = part
        self.ready = threading.Event()
        self.renew = threading.Event()
        """Set when the part must start again because an address it uses has changed."""
        self._record = record.load(self._folders, part.name)
        self._unsaved = False
        self._gone = threading.Event()
        """Set when a process that this supervisor started has ended; an adopted one has to be looked at."""
        self._how = ""
        self._last = self._record.identity

    @property
    def is_starting(self) -> bool:
        """Not ready yet, and not known to fail."""
        return not self.ready.is_set() and not self._record.failures

    def run(self) -> None:
        """Start, watch, start again; never returns before the supervisor ends."""
        attempt = 0
        adopted = self._record.alive
        while not self._home.ending.is_set():
            began = time.monotonic()
            try:
                if not adopted:
                    self._wait_for_others()
                    began = time.monotonic()
                    self._start()
                self._watch(adopted)
                why = None
            except Exception as error:  # whatever goes wrong with one part must not end the keeping of it
                why = error
            if self._home.ending.is_set():
                return
            adopted = False
            was_ready = self.ready.is_set()
            self.ready.clear()
            attempt = 0 if time.monotonic() - began > _STEADY_S else attempt + 1
            self._failed(why, was_ready)
            self._home.ending.wait(BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)])

    def _wait_for_others(self) -> None:
        self._last = self._record.identity or self._last
        self._become("waiting", identity=None)
        until = time.monotonic() + AFTER_S

        def may_start() -> bool | None:
            if not all(map(self._home.is_ready, self.part.needs)):
                return None
            return time.monotonic() > until or not any(map(self._home.is_starting, self.part.after)) or None

        run = Run(id=self.part.name, cancelled=self._home.ending)
        wait_for(f"what {self.part.name} needs", may_start, limit_s=None, run=run)

    def _start(self) -> None:
        mark = self._folders.mark(self.part.name)
        end_marked(mark, self._last)  # children that outlived a killed part would hold its ports and files
        self._home.renew_ports(self.part)
        self.renew.clear()
        self._become("preparing")
        record.rotate(self._folders.log(self.part.name))
        context = self._home.context()
        self.part.prepare(context)
        if self.part.command is None:
            return
        command = self.part.command(context)
        process = start(
            command.arguments, environ={**self._home.environ, **command.environ}, mark=mark,
            folder=self._folders.run, log=self._folders.log(self.part.name),
        )  # fmt: skip
        self._become("starting", identity=identity_of(process.pid))
        self._gone = threading.Event()  # a new one: the predecessor's thread may still set the old
        threading.Thread(target=self._take_exit, args=(process, self._gone), daemon=True).start()

    def _take_exit(self, process: subprocess.Popen[bytes], gone: threading.Event) -> None:
        code = process.wait()
        self._how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        gone.set()

    def _watch(self, adopted: bool) -> None:
        """Returns when the process has ended, or has to start again."""
        probed_at = shortened_at = 0.0
        tidied_at = time.monotonic() - _TIDY_S + _TIDY_FIRST_S
        has_process = self.part.command is not None
        while not self._home.ending.is_set():
            if self._unsaved:
                self._save()
            if has_process and (self._gone.is_set() or (adopted and not self._record.alive)):
                return
            if time.monotonic() - shortened_at > _SHORTEN_S:
                shortened_at = time.monotonic()
                with suppress(OSError):
                    record.shorten(self._folders.log(self.part.name))
            if self.ready.is_set() and time.monotonic() - tidied_at > _TIDY_S:
                tidied_at = time.monotonic()
                self._tidy()
            if self.renew.is_set():
                if has_process:
                    end(self._record.identity, self._folders.mark(self.part.name), self.part.grace_s)
                return
            if not self.ready.is_set() and time.monotonic() - probed_at > _PROBE_S:
                try:
                    answer = self.part.probe(self._home.context())
                    self._become("ready", note=answer, failures=0, error=None)
                    self.ready.set()
                except Exception as error:
                    self._record = replace(self._record, note=str(error)[:300])
                probed_at = time.monotonic()
            # A process of its own wakes it at once; adopted ones are looked at.
            self._gone.wait(_TICK_S if has_process else 1.0)

    def _tidy(self) -> None:
        try:
            self.part.tidy(self._home.context())
        except Exception as error:
            say(f"{self.part.name}: what is old could not be deleted, the next try is in a day\n{error}")

    def _failed(self, error: Exception | None, was_ready: bool) -> None:
        said = None
        if isinstance(error, TwinlakeError):
            said = error.to_json()
        elif was_ready and self._how == f"exit code {EXIT_CODE}":
            said = record.last_words(self._folders.log(self.part.name))
        elif full := full_disk(self._folders.home, error=error):  # whatever it died of, it needs room
            said = full.to_json()
        elif error is not None:
            why = f"{type(error).__name__}: {error}"
            said = {"what": f"{self.part.name} could not be started", "why": why}
            say("".join(traceback.format_exception(error)))
        say(f"{self.part.name} ended ({said or self._how or 'its process is gone'})")
        self._become(
            "failed", restarts=self._record.restarts + 1, error=said,
            failures=0 if was_ready else self._record.failures + 1,
        )  # fmt: skip

    def _become(self, state: str, **changes: object) -> None:
        self._record = self._record.become(state, **changes)
        self._save()

    def _save(self) -> None:
        """What cannot be written now is written later: a full disk must not end the keeping of a part.

        A supervisor that finds an old record ends the part's processes by their mark before it starts it.
        """
        was_unsaved, self._unsaved = self._unsaved, True
        try:
            record.save(self._folders, self._record)
            self._unsaved = False
        except (OSError, TwinlakeError) as error:
            if not was_unsaved:
                say(f"{self.part.name}: its record cannot be written\n{error}")
