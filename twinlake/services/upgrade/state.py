"""State: how far an upgrade has come, in `<data directory>/upgrade/state.json`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from twinlake.base import files
from twinlake.base.errors import BusyError, TwinlakeError, UsageError
from twinlake.base.files import SECRET, replace_file
from twinlake.base.version import VERSION
from twinlake.services.folders import Folders


class Step(StrEnum):
    """Written before it is begun; a kill anywhere leaves the one that is to be made again."""

    STOP = "stop"
    KEEP = "keep"
    START = "start"
    CHECK = "check"
    UPGRADED = "upgraded"
    RETURN = "return"
    RESTART = "restart"
    RETURNED = "returned"
    LET_GO = "let go"


FORWARD = (Step.STOP, Step.KEEP, Step.START, Step.CHECK)
DONE = (Step.UPGRADED, Step.RETURNED)
WORDS: Mapping[Step, str] = {
    Step.STOP: "stopping what runs", Step.KEEP: "keeping the lake of before",
    Step.START: "starting the new version", Step.CHECK: "checking what the new version has made of the lake",
    Step.RETURN: "putting back the lake of before", Step.RESTART: "starting the version of before",
    Step.LET_GO: "deleting what is no longer needed",
}  # fmt: skip
BOTH_WAYS = "`twinlake upgrade` goes on with it, `twinlake upgrade --back` goes back to the lake of before"


@dataclass(frozen=True, kw_only=True)
class State:
    """Of one upgrade. `was` and `now` are the versions of Twinlake before and after it."""

    step: Step
    was: str = ""
    """"" where nobody wrote down which version started the services last."""
    now: str = VERSION
    python: str = ""
    """The Python that started the services of before, and where it had Twinlake from."""
    path: str = ""
    lake: str = ""
    services: list[str] = field(default_factory=list)
    """Those that are to run again; none where all are."""
    ran: bool = False
    """Whether anything ran before: then it runs again once it went back."""
    started: bool = False
    """Whether the version of before was started again."""
    problems: list[list[str]] | None = None
    """What `twinlake status` had found before, by kind and title; None where nobody could be asked."""
    standing: dict[str, Any] = field(default_factory=dict)
    """Release and positions before."""
    files: dict[str, str] = field(default_factory=dict)
    """Digests of settings, users and addresses when the upgrade was made."""
    began_at: str = ""
    why: str = ""
    """Why it went back, where it did."""

    @property
    def is_unfinished(self) -> bool:
        return self.step not in DONE

    def at(self, step: Step, **changes: Any) -> State:
        return replace(self, step=step, **changes)

    def save(self, folders: Folders) -> State:
        folders.upgrade.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(_file(folders), json.dumps(asdict(self), indent=2), SECRET)
        return self


def load(folders: Folders) -> State | None:
    """None where no upgrade was made or all of it is over; UsageError for a file that cannot be read."""
    file = _file(folders)
    try:
        found = json.loads(file.read_text())
        return State(**{**found, "step": Step(found["step"])})
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{file} cannot be read", f"{type(error).__name__}: {error}",
            "it was changed, or is of a newer Twinlake: use that one; the lake of before is "
            "lake.before beside the lake, if there is one",
        ) from error  # fmt: skip


def forget(folders: Folders) -> None:
    """Nothing is left to say; the state goes first, for without it the rest means nothing."""
    _file(folders).unlink(missing_ok=True)
    shutil.rmtree(folders.upgrade, ignore_errors=True)


def error_of(folders: Folders) -> TwinlakeError | None:
    """What `status`, `doctor` and `up` say of an upgrade that was not finished."""
    state = load(folders)
    if state is None or not state.is_unfinished:
        return None
    remedy = BOTH_WAYS
    if state.step in (Step.RETURN, Step.RESTART):
        remedy = "`twinlake upgrade --back` goes on with it"
    if state.step is Step.LET_GO:
        remedy = "`twinlake upgrade --done` goes on with it"
    return UsageError(
        f"an upgrade of {state.began_at} was not finished", f"it ended while {WORDS[state.step]}", remedy
    )


def error_seen(folders: Folders) -> TwinlakeError | None:
    """What others see of it: that it was not finished, or that it still runs."""
    error, state = error_of(folders), load(folders)
    if error is None or state is None:
        return None
    try:
        with alone(folders):
            return error
    except BusyError:
        return BusyError(
            f"an upgrade of {state.began_at} is running", f"it is {WORDS[state.step]}", "wait for its end"
        )


def refuse_start(folders: Folders) -> None:
    """UsageError where `twinlake up` would start on half an upgrade, or by the new version on what was put
    back."""
    state = load(folders)
    if state is None or state.step in (Step.UPGRADED, Step.LET_GO):
        return
    if state.step not in (Step.RESTART, Step.RETURNED):
        error = error_of(folders)
        assert error
        raise error
    if VERSION != state.was and VERSION == state.now:
        raise UsageError(
            f"the lake of before was put back from Twinlake {VERSION}, and this is that version",
            "starting it would take the lake on again, and nothing of before would be kept",
            f"install Twinlake {state.was or 'of before'} and run `twinlake up`; to try again with this one, "
            "`twinlake upgrade --done`, then `twinlake upgrade`",
        )


def alone(folders: Folders) -> AbstractContextManager[None]:
    """While no other upgrade of this data directory runs; BusyError where one does."""
    folders.make()
    return files.alone(folders.run / "upgrade.lock", BusyError(
        "another `twinlake upgrade` of this data directory is running", str(folders.home), "wait for its end"
    ))  # fmt: skip


def _file(folders: Folders) -> Path:
    return folders.upgrade / "state.json"
