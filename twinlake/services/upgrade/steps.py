"""Steps: an upgrade from one version of Twinlake to this one, and the way back, each step safe to kill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.version import VERSION
from twinlake.services.folders import Folders
from twinlake.services.upgrade import kept, starter, state
from twinlake.services.upgrade.kept import Lakes
from twinlake.services.upgrade.starter import Starter
from twinlake.services.upgrade.state import DONE, FORWARD, State, Step

TO_END = "`twinlake upgrade --done` lets go what is kept of the earlier one, and shows first what that frees"


class Platform(Protocol):
    """What runs, as far as an upgrade has to do with it."""

    def look(self, services: Sequence[str]) -> None:
        """Raises TwinlakeError for whatever is known now to keep the new version from starting."""

    def running(self) -> list[str]:
        """The services that are to run, none where nothing does."""

    def problems(self) -> list[list[str]] | None:
        """What `twinlake status` finds, by kind and title; None where nobody answers."""

    def standing(self) -> dict[str, Any]:
        """Release and positions, by the lake's files."""

    def down(self) -> None: ...

    def up(self, services: Sequence[str]) -> None:
        """Starts them by this code and waits until they answer; TwinlakeError where one does not."""

    def wrong(self, before: State) -> TwinlakeError | None:
        """Of what runs now, what is not as it was before; waits a little for what passes."""

    def up_as_before(self, by: Starter, services: Sequence[str]) -> bool:
        """Starts them by the code of before; whether they answer."""

    def note(self, what: Mapping[str, str]) -> None:
        """In the audit log, where somebody answers."""


@dataclass(frozen=True, kw_only=True)
class Upgrade:
    """One at a time: `state.alone` is held."""

    platform: Platform
    folders: Folders
    lakes: Lakes
    now: Callable[[], str]
    say: Callable[[str], None] = lambda text: None

    def forward(self, services: Sequence[str] = ()) -> State:
        """From the beginning, or from where it was interrupted, to UPGRADED; where that fails, back, and an
        error with the reason. `services` are those to start, unless given those that ran."""
        found = state.load(self.folders)
        if found is None:
            found = self._begin(services)
        elif found.step in DONE or found.step is Step.LET_GO:
            raise self._ended_already(found)
        elif found.step not in FORWARD:
            self.say("an upgrade that was going back was interrupted, and goes on going back")
            return self.back()
        else:
            if VERSION != found.now and VERSION == found.was:
                raise UsageError(
                    f"the upgrade was begun by Twinlake {found.now}, and this is {VERSION}", "",
                    "go on with that version, or go back: `twinlake upgrade --back`",
                )  # fmt: skip
            self.say(f"an upgrade was interrupted while {state.WORDS[found.step]}, and goes on there")
            if found.step in (Step.STOP, Step.KEEP):
                self.platform.look(found.services)
            step = Step.START if found.step is Step.CHECK else found.step  # what runs already, goes on
            found = found.at(step, now=VERSION).save(self.folders)
        try:
            return self._go_on(found)
        except (TwinlakeError, OSError) as error:
            failed = error
        why = "; ".join(filter(None, (str(getattr(failed, "what", failed)), str(getattr(failed, "why", "")))))
        self.say(f"the upgrade failed: {why}")
        found = state.load(self.folders) or found
        ended = self._return(found.at(found.step, why=why))
        raise TwinlakeError(
            f"the upgrade to Twinlake {found.now} failed, and everything is back as it was", why,
            self.after_return(ended) + (f" The reason may be fixed by: {failed.remedy}"
            if isinstance(failed, TwinlakeError) and failed.remedy else ""),
        ) from failed  # fmt: skip

    def back(self) -> State:
        """To RETURNED, whatever of the upgrade was done."""
        found = state.load(self.folders)
        if found is None:
            raise UsageError(
                "there is no upgrade to go back from", f"nothing of before is kept in {self.folders.home}",
                "a lake of before is kept until `twinlake upgrade --done`",
            )  # fmt: skip
        if found.step is Step.LET_GO:
            raise UsageError(
                "there is no going back any more", "what was kept is being deleted",
                "`twinlake upgrade --done` goes on with it",
            )  # fmt: skip
        if found.step is Step.UPGRADED:
            kept.refuse_gone(self.lakes)
            self.platform.note(_back(found))
            now = kept.digests(self.folders)
            names = sorted(found.files.keys() | now.keys())
            if changed := [name for name in names if found.files.get(name) != now.get(name)]:
                self.say(f"changed since the upgrade, and put back as before it: {', '.join(changed)}; "
                         f"those of now are in {self.folders.upgrade / 'after'}. Users that were removed "
                         "since can sign in again, and secrets that were rotated let in again")  # fmt: skip
            found = found.at(found.step, ran=True)
        if found.step is Step.RETURNED:
            raise UsageError(
                "the lake of before is back already", f"since the upgrade of {found.began_at}",
                self.after_return(found),
            )  # fmt: skip
        return self._return(found)

    def let_go(self) -> None:
        """Nothing of before or after is kept any more; it cannot be undone."""
        if (found := state.load(self.folders)) is not None:
            if found.step not in (*DONE, Step.LET_GO):
                error = state.error_of(self.folders)
                assert error
                raise error
            found.at(Step.LET_GO).save(self.folders)
        kept.let_go(self.lakes)
        state.forget(self.folders)

    def after_return(self, ended: State) -> str:
        """What to do once the lake of before is back."""
        which = f"Twinlake {ended.was}" if ended.was else "the version of Twinlake that ran before"
        runs = f"{which} runs again."
        if not ended.started:
            runs = f"Install {which} where it is no longer, and run `twinlake up` of it."
        there = f" {self.lakes.after} has the lake of after; `twinlake upgrade --done` lets it go."
        return runs + (there if self.lakes.after.exists() else "")

    def _begin(self, services: Sequence[str]) -> State:
        self.say("looking whether anything is in the way ...")
        kept.refuse_unkeepable(self.lakes, self.folders)
        running = self.platform.running()
        chosen = [*(services or running)]
        self.platform.look(chosen)
        by = starter.load(self.folders)
        problems = self.platform.problems() if running else None
        begun = State(
            step=Step.STOP, was=by.version, python=by.python, path=by.path, lake=str(self.lakes.lake),
            services=chosen, ran=bool(running), problems=problems, began_at=self.now(),
        ).save(self.folders)  # fmt: skip
        breakpoints.at(Point.UPGRADE_BEGUN)
        return begun

    def _go_on(self, at: State) -> State:
        if at.step is Step.STOP:
            self.platform.down()
            breakpoints.at(Point.UPGRADE_STOPPED)
            at = at.at(Step.KEEP, standing=self.platform.standing()).save(self.folders)
        if at.step is Step.KEEP:
            self.platform.down()  # somebody may have started something since a kill
            made = kept.keep(self.lakes, self.folders)
            self.say(f"kept: the lake in {self.lakes.before} ({made.linked:,} data files by links, "
                     f"{made.copied:,} files copied, {made.copied_bytes:,} bytes), settings, users, "
                     f"addresses and Airflow's database in {self.folders.upgrade / 'before'}; not the "
                     "records of Kafka and the registry, which stay as they are")  # fmt: skip
            at = at.at(Step.START).save(self.folders)
        if at.step is Step.START:
            breakpoints.at(Point.UPGRADE_STARTING)
            self.platform.up(at.services)
            breakpoints.at(Point.UPGRADE_STARTED)
            at = at.at(Step.CHECK).save(self.folders)
        if at.step is Step.CHECK:
            self.say("checking that the lake is as it was ...")
            if (error := self.platform.wrong(at)) is not None:
                raise error
            breakpoints.at(Point.UPGRADE_CHECKED)
            at = at.at(Step.UPGRADED, files=kept.digests(self.folders)).save(self.folders)
            self.platform.note({"change": "upgrade", "from": at.was or "unknown", "to": at.now})
        return at

    def _return(self, at: State) -> State:
        """Back, however far it had come; before the lake was kept, nothing but what runs had changed."""
        if at.step in (Step.STOP, Step.KEEP):
            kept.forget_kept(self.lakes, self.folders)
            return self._restart(at.at(Step.RESTART).save(self.folders))
        if at.step is not Step.RESTART:
            if at.step is not Step.RETURN:
                kept.refuse_gone(self.lakes)
            at = at.at(Step.RETURN).save(self.folders)
            breakpoints.at(Point.UPGRADE_RETURNING)
            self.platform.down()
            kept.put_back(self.lakes, self.folders)
            self.say(f"{self.lakes.lake} is the lake of before again; that of after is {self.lakes.after}")
            at = at.at(Step.RESTART).save(self.folders)
        return self._restart(at)

    def _restart(self, at: State) -> State:
        breakpoints.at(Point.UPGRADE_RESTARTING)
        by = Starter(python=at.python, version=at.was, path=at.path)
        if not at.ran:
            self.say("nothing ran before, and nothing is started")
        elif not by.is_there():
            self.say(f"the Python that started the services before, {by.python or 'which is unknown'}, does "
                     f"not have Twinlake {by.version or 'of before'}: nothing is started")  # fmt: skip
        elif self.platform.up_as_before(by, at.services):
            at = at.at(at.step, started=True)
            self.platform.note(_back(at))
        else:
            self.say(f"Twinlake {by.version} does not get ready; see `twinlake status` and `twinlake logs`")
        ended = at.at(Step.RETURNED).save(self.folders)
        if not self.lakes.after.exists():
            state.forget(self.folders)  # nothing had been kept
        return ended

    def _ended_already(self, found: State) -> UsageError:
        which = {
            Step.UPGRADED: f"of {found.began_at} to Twinlake {found.now}: {self.lakes.before} is kept",
            Step.RETURNED: f"of {found.began_at}, which was taken back: {self.lakes.after} is kept",
        }.get(found.step, "whose lake of before is being deleted")
        remedy = TO_END
        if found.step is Step.UPGRADED:
            remedy += "; `twinlake upgrade --back` goes back to before it"
        return UsageError("an earlier upgrade has not been ended", f"there is one {which}", remedy)


def _back(at: State) -> dict[str, str]:
    return {"change": "back", "from": at.now, "to": at.was or "unknown"}
