"""Rotation: another secret in place of each that Twinlake itself has made, while everything runs.

The server of a secret first accepts a new one beside the old one, and is asked whether it does; then
services.json gets the new one, from which all others read it; after a while the server accepts it alone, and
is asked that, too. A kill at any step leaves the secret of services.json accepted. `run/rotation.json` then
has the names of what was begun, and the next rotation changes these as well.
"""

from __future__ import annotations

import json
import secrets as randomness
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from twinlake.base.errors import NotFoundError, TimedOutError, TwinlakeError, UsageError
from twinlake.base.files import SECRET, alone, replace_file
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services, Settings
from twinlake.services.folders import Folders, folders_of
from twinlake.services.rotated import ALL, NAMES, Secret

GRACE_S = 20.0
"""So long the old ones hold beside the new ones."""
LONGEST_GRACE_S = 50.0
"""With what comes before and after, the old ones are refused within a minute."""
ASKED_S = 10.0
_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class Rotated:
    """What became of one secret. `answered` says whether a server was there to be asked; one that is started
    later knows the new secret alone. The seconds are since the rotation began."""

    name: str
    answered: bool
    replaced_s: float
    refused_s: float


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """All that a rotation takes from outside."""

    settings: Settings
    audit: Callable[[Sequence[str]], None] = lambda names: None
    """Writes down what is about to change; what it raises ends the rotation before anything is."""
    say: Callable[[str], None] = lambda text: None
    grace_s: float = GRACE_S
    sleep: Callable[[float], None] = time.sleep
    make: Callable[[], str] = lambda: randomness.token_urlsafe(_BYTES)
    known: Mapping[str, Secret] = field(default_factory=lambda: ALL)

    @property
    def folders(self) -> Folders:
        return folders_of(self.settings)

    def run(self, only: Collection[str] = ()) -> list[Rotated]:
        """Rotates the named secrets, or all that are Twinlake's own, and what an earlier rotation left."""
        services, chosen = self.settings.services(), self._chosen(only)
        self.audit([one.name for one in chosen])
        # what was begun earlier and cannot be changed now keeps no old secret either
        begun = dict.fromkeys([*(one.name for one in chosen), *unfinished(self.folders)])
        replace_file(self.folders.rotation, json.dumps([*begun]), SECRET)
        began, old = time.monotonic(), {one.name: one.of(services) for one in chosen}
        new = {one.name: self.make() for one in chosen}
        self._accept(chosen, old, new)
        answered = self._asked(chosen, new)
        self._switch(chosen, old, new)
        replaced_s = time.monotonic() - began
        if any(answered.values()):
            self.say(f"services.json has the new ones; the old ones hold {self.grace_s:.0f} seconds more")
            self.sleep(self.grace_s)
        self._drop()
        return [
            Rotated(
                name=one.name, answered=answered[one.name], replaced_s=round(replaced_s, 1),
                refused_s=self._refused(one, old[one.name], began),
            )
            for one in chosen
        ]  # fmt: skip

    def _chosen(self, only: Collection[str]) -> list[Secret]:
        if unknown := sorted(set(only) - set(self.known)):
            raise UsageError(
                f"there is no secret {', '.join(unknown)} to rotate", "", f"known: {', '.join(self.known)}"
            )
        wanted = {*only, *unfinished(self.folders)} if only else set(self.known)
        asked = {name: one for name, one in self.known.items() if name in wanted}
        why_not = {name: one.why_not(self.settings) for name, one in asked.items()}
        for name, why in why_not.items():
            if why and name in only:
                raise UsageError(f"{name} cannot be rotated", why, "leave it out")
            if why:
                self.say(f"{name} is left as it is: {why}")
        chosen = [one for name, one in asked.items() if not why_not[name]]
        if not chosen:
            raise UsageError("nothing can be rotated", "; ".join(filter(None, why_not.values())), "")
        return chosen

    def _accept(self, chosen: Sequence[Secret], old: Mapping[str, str], new: Mapping[str, str]) -> None:
        with alone(self.folders.secrets_lock):
            for one in chosen:
                one.accept(self.settings, old[one.name], new[one.name])

    def _asked(self, chosen: Sequence[Secret], new: Mapping[str, str]) -> dict[str, bool]:
        """Of each whether its server is there and has let the new one in. Where one has not, all forget the
        new ones, and nothing has changed."""
        found = {}
        for one in chosen:
            opens = _opens(one, self.settings.services(), new[one.name], wanted=True)
            if opens is False:
                self._drop()  # by services.json: somebody may have been given another one meanwhile
                raise TwinlakeError(
                    f"{one.name} was not rotated, nor was any other",
                    f"{one.server} does not take a new one while it runs; it may be of an older Twinlake",
                    "`twinlake down`, `twinlake up`, then `twinlake rotate` again",
                )
            found[one.name] = bool(opens)
        return found

    def _switch(self, chosen: Sequence[Secret], old: Mapping[str, str], new: Mapping[str, str]) -> None:
        with alone(self.folders.secrets_lock):
            services = self.settings.services()
            # one that somebody was given meanwhile, by `twinlake users password`, is the newer one
            mine = [one for one in chosen if one.of(services) == old[one.name]]
            for one in mine:  # once more: a supervisor that has started a part meanwhile wrote hashes again
                one.accept(self.settings, old[one.name], new[one.name])
            services = self.settings.services()
            for one in mine:
                services = one.put(services, new[one.name])
            services.save(self.settings.services_file)

    def _drop(self) -> None:
        """Of all that was begun, the secret of services.json alone lets in."""
        with alone(self.folders.secrets_lock):
            services = self.settings.services()
            for one in (self.known[name] for name in unfinished(self.folders)):
                with suppress(NotFoundError):  # a user who was removed meanwhile: nothing of them lets in
                    one.keep_only(self.settings, one.of(services))
            self.folders.rotation.unlink(missing_ok=True)

    def _refused(self, one: Secret, old: str, began: float) -> float:
        if _opens(one, self.settings.services(), old, wanted=False):
            raise TwinlakeError(
                f"the old {one.name} still lets in", f"{one.server} does not forget it",
                "`twinlake down` and `twinlake up`: what is started knows the new one alone",
            )  # fmt: skip
        return round(time.monotonic() - began, 1)


def unfinished(folders: Folders) -> list[str]:
    """The names of what a rotation has begun and not ended."""
    try:
        found: Any = json.loads(folders.rotation.read_text())
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        return list(NAMES)  # it cannot be known
    return [name for name in found if name in NAMES] if isinstance(found, list) else list(NAMES)


def unfinished_error(folders: Folders) -> TwinlakeError | None:
    """Of a rotation that was ended before its end: old secrets hold until somebody runs it again."""
    if not (names := unfinished(folders)):
        return None
    return TwinlakeError(
        "a rotation of secrets was not finished", f"old ones of {', '.join(names)} may still let in",
        "run `twinlake rotate` again, unless it is running",
    )  # fmt: skip


def _opens(one: Secret, services: Services, secret: str, wanted: bool) -> bool | None:
    """Whether the server lets in by the secret; None where nobody answers. What is not as wanted is asked
    again for a while."""

    def as_wanted() -> tuple[bool, ...] | None:
        answers = one.opens(services, secret)
        return answers if all(answer == wanted for answer in answers) else None

    try:
        answers = wait_for(f"{one.server} to have read its secrets", as_wanted, ASKED_S)
    except TimedOutError:
        return not wanted
    return wanted if answers else None
