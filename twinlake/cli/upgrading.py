"""What an upgrade has to do with the services that run here: look, start, end, compare, write down."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinlake.base.errors import DifferenceError, TwinlakeError, UsageError
from twinlake.base.waiting import wait_for
from twinlake.cli.check import refuse_stranding
from twinlake.cli.doctor import check_given
from twinlake.cli.jobs import lake_client
from twinlake.cli.status import asked
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.standing import standing
from twinlake.server import lock
from twinlake.services.all import all_parts
from twinlake.services.folders import folders_of
from twinlake.services.part import Part
from twinlake.services.problems import Problem, problems
from twinlake.services.supervise import control, record
from twinlake.services.upgrade.starter import Starter
from twinlake.services.upgrade.state import State

PASSES_S = 30.0
"""A problem that lasts longer does not pass by itself."""
TAKE_ON_S = 1_800.0
"""So long a lake server may take to get ready: with the lake it takes on, definitions are analysed again."""
MADE_BY_A_START = frozenset({"part", "supervisor", "spark", "lake server", "version"})
"""Where nobody could be asked before, problems of these kinds are of the new version's making."""
NO_FAILURE = frozenset({"warning"})


@dataclass(frozen=True, kw_only=True)
class Here:
    """The services of one data directory on this machine."""

    settings: Settings
    lake: Path
    say: Callable[[str], None]
    why: str | None = None

    def look(self, services: Sequence[str]) -> None:
        """All that `twinlake up` looks at, whether or not anything runs, and the lake's format."""
        from twinlake.setup.ensure import ensure_jars
        from twinlake.spark.cluster import check_master

        settings = self.settings
        settings.refuse_incomplete()
        _ = settings.project
        if folders_of(settings).containers.exists():
            raise UsageError(
                "the services of this data directory run in containers", "an upgrade there is another image",
                "take a backup (`twinlake backup DIR`), then `docker compose up --wait` with the new image",
            )  # fmt: skip
        self.say(f"the lake has {formats.described(self.lake)}")
        parts = self._parts(services)
        ensure_jars(settings, os.environ, self.say)
        control.check_prerequisites(settings, os.environ)
        check_master(settings.values)
        check_given(settings, [name for name in (*settings.values.given, "lake") if name in _names(parts)])
        refuse_stranding(settings)

    def running(self) -> list[str]:
        """Those that were asked for, as far as this version knows them."""
        folders = folders_of(self.settings)
        wanted = record.wanted(folders)
        if not any(record.load(folders, name).alive for name in ("supervisor", *wanted)):
            return []
        found = [part for part in all_parts(self.settings.values.given) if part.name in wanted]
        return [*dict.fromkeys([*(part.service for part in found), "lake"])]

    def problems(self) -> list[list[str]] | None:
        """Of an older version that says less, or otherwise, nothing is known."""
        try:
            return [[one.kind, one.title] for one in self._problems()]
        except (TwinlakeError, AttributeError, KeyError, TypeError):
            return None

    def standing(self) -> dict[str, Any]:
        return standing(self.lake)

    def down(self) -> None:
        control.bring_down(self.settings, lambda name: self.say(f"ended {name}"))
        lock.refuse_taken(self.lake)  # a lake that another data directory names, too

    def up(self, services: Sequence[str]) -> None:
        parts, patience_s = self._parts(services), self._patience_s
        for ready in control.bring_up(self.settings, parts, os.environ, self.say, patience_s):
            self.say(f"{ready.service} answers after {ready.seconds:.1f} s: {ready.answer}")

    def up_as_before(self, by: Starter, services: Sequence[str]) -> bool:
        self.say(f"starting Twinlake {by.version} by {by.python}")
        return by.up(self.settings, services, os.environ, self.say)

    def wrong(self, before: State) -> TwinlakeError | None:
        if found := behind(before.standing, self._standing_now()):
            return DifferenceError(
                "the lake is not as it was before the upgrade", "; ".join(found),
                "report it, with the bundle of `twinlake support`",
            )  # fmt: skip
        until = time.monotonic() + PASSES_S
        while new := list(self._new_problems(before)):
            if time.monotonic() > until:
                for one in new[1:]:
                    self.say(f"{one.title}: {one.error['what']}")
                error = new[0].error
                return TwinlakeError(
                    f"{new[0].title}: {error['what']}", error.get("why", ""), error.get("remedy", "")
                )
            time.sleep(1)
        if left := self._problems():
            first = f"{left[0].title}: {left[0].error['what']}"
            self.say(f"not of the upgrade's making, and named by `twinlake status`: {first}"
                     + (f", and {len(left) - 1} more" if left[1:] else ""))  # fmt: skip
        return None

    def note(self, what: Mapping[str, str]) -> None:
        try:
            lake_client(self.settings, why=self.why).upgraded(what)
        except TwinlakeError as error:  # nothing runs, or what runs is older and knows no such entry
            self.say(f"the audit log does not have this: {error.what}")

    @property
    def _patience_s(self) -> float:
        return max(TAKE_ON_S, float(self.settings.values.limits.start_seconds))

    def _parts(self, services: Collection[str]) -> tuple[Part, ...]:
        parts = control.choose(services, (), self.settings.values.given)
        if "lake" not in _names(parts):
            raise UsageError(
                "the lake server is not among the services to start", "it is what takes the lake on",
                "add `lake` to --only",
            )  # fmt: skip
        return parts

    def _standing_now(self) -> dict[str, Any]:
        """Once every topic that is not held back is read, or has said why not."""

        def begun() -> bool | None:
            _, lake = asked(self.settings)
            is_begun = not lake.get("error") and all(one["state"] != "starting" for one in lake["topics"])
            return is_begun or None

        wait_for("the topics to be read", begun, self._patience_s, every_s=0.5)
        return standing(self.lake)

    def _problems(self) -> list[Problem]:
        parts, lake = asked(self.settings)
        found = problems(parts, lake, record.supervisor_error(self.settings))
        found += [
            Problem("part", None, part["part"], {"what": "it does not answer", "why": str(part["answer"])})
            for part in parts
            if not part["answers"] and not part["error"]
        ]
        return found

    def _new_problems(self, before: State) -> Iterator[Problem]:
        known = before.problems
        stalled = before.standing.get("stalled", ())
        for one in self._problems():
            is_new = [one.kind, one.title] not in known if known is not None else one.kind in MADE_BY_A_START
            if is_new and one.kind not in NO_FAILURE and not (one.kind == "version" and one.title in stalled):
                yield one


def behind(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """In which a lake is not as it was: another live release, less of a log, a version that is behind."""
    found = []
    if before["release"] != now["release"]:
        found.append(f"live was {_release(before['release'])}, and now {_release(now['release'])}")
    for topic, batch in before["logs"].items():
        if (at := now["logs"].get(topic)) is None or at < batch:
            found.append(f"the log of {topic} was at batch {batch}, and now {_place(at)}")
    for version, position in before["positions"].items():
        for topic, batch in position.items():
            if (at := now["positions"].get(version, {}).get(topic)) is None or at < batch:
                found.append(f"{version} was at batch {batch} of {topic}, and now {_place(at)}")
    return found


def _place(batch: int | None) -> str:
    return "is not there" if batch is None else f"at {batch}"


def _release(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return "no release"
    return f"release {one['number']} ({', '.join(f'{name} {of}' for name, of in one['tables'].items())})"


def _names(parts: Collection[Part]) -> set[str]:
    return {part.service for part in parts}
