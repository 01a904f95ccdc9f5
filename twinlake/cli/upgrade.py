"""`twinlake upgrade`: from the version of Twinlake that ran to this one, or back to where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.base.times import format_moment, utc_now
from twinlake.cli.jobs import AS_JSON
from twinlake.cli.options import names_in
from twinlake.cli.output import load_settings, print_json, refuse_unanswered, say, tell
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.upgrade import kept, state
from twinlake.services.upgrade.kept import Lakes
from twinlake.services.upgrade.state import State
from twinlake.services.upgrade.steps import Upgrade


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("upgrade")(upgrade)


def upgrade(
    only: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="services to start; those that run now, or all, unless given"),
    ] = None,
    back: Annotated[
        bool, typer.Option("--back", help="go back to the lake and the version of before the upgrade")
    ] = False,
    done: Annotated[
        bool, typer.Option("--done", help="end it: show what is kept of before, and delete it")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="with --done: do not ask")] = False,
    reason: Annotated[str | None, typer.Option(help="why, for the audit log")] = None,
    as_json: AS_JSON = False,
) -> None:  # fmt: skip
    """Upgrade the services and the lake of this data directory to the Twinlake that this command is of.

    Install the new version first. It looks whether anything is in the way, stops the services, keeps the lake
    of before beside the lake, starts the services, and checks that the lake is as it was. Where that fails,
    everything is put back as it was, and the error says why (exit code 1). Interrupted, it goes on when it is
    run again.

    --back does the same later: records that came since are read again from Kafka. --done deletes what is
    kept; after that there is no going back.
    """
    if back and done:
        raise UsageError("--back and --done are two ways", "", "give one of them")
    names = names_in("--only", only)
    settings = load_settings()
    folders = folders_of(settings)
    if not settings.home.is_dir():
        raise UsageError(
            f"there is no data directory {settings.home}", "nothing was started there",
            "name it with --home; a new one needs no upgrade: `twinlake up`",
        )  # fmt: skip
    with state.alone(folders):
        found = state.load(folders)
        # of one that was begun it is known, whatever the settings say now
        lakes = Lakes(lake=Path(found.lake)) if found and found.lake else _lakes(settings)
        if done:
            _let_go(_made(settings, lakes, reason), found, yes, as_json)
            return
        work = _made(settings, lakes, reason)
        ended = work.back() if back else work.forward(names)
        _show(work, ended, as_json)


def _made(settings: Settings, lakes: Lakes, reason: str | None) -> Upgrade:
    from twinlake.cli.upgrading import Here  # it reads the lake: its libraries cost a start

    return Upgrade(
        platform=Here(settings=settings, lake=lakes.lake, say=tell, why=reason), folders=folders_of(settings),
        lakes=lakes, now=lambda: format_moment(utc_now().replace(microsecond=0)), say=tell,
    )  # fmt: skip


def _lakes(settings: Settings) -> Lakes:
    """UsageError for a lake in a store of other machines."""
    if not isinstance(settings.lake, Path):
        raise UsageError(
            f"the lake {settings.lake} cannot be upgraded by this command",
            "the lake of before is kept by links, which only a disk of this machine has",
            "take a backup (`twinlake backup DIR`), `twinlake down`, then `twinlake up` with this version; "
            "the way back is `twinlake restore DIR` with the version of before",
        )
    return Lakes.of(settings.lake)


def _show(work: Upgrade, ended: State, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "step": ended.step, "from": ended.was, "to": ended.now, "services": ended.services,
                "release": (ended.standing.get("release") or {}).get("number"), "started": ended.started,
                "kept": [str(place) for place in kept.kept_lakes(work.lakes)],
            }
        )  # fmt: skip
        return
    if ended.step is state.Step.RETURNED:
        say(f"the lake of before is back. {work.after_return(ended)}")
        return
    say(f"upgraded to Twinlake {ended.now}: everything answers, release and positions are those of before")
    say(f"{work.lakes.before} is kept: `twinlake upgrade --back` goes back to it, `twinlake upgrade --done` "
        "lets it go")  # fmt: skip


def _let_go(work: Upgrade, found: State | None, yes: bool, as_json: bool) -> None:
    places = kept.kept_lakes(work.lakes)
    if found is None and not places:
        raise UsageError("nothing of an upgrade is kept", "", "there is nothing to let go")
    if found is None and not work.folders.upgrade.exists() and places != [work.lakes.going]:
        raise UsageError(
            "nothing was deleted", f"no upgrade of this data directory has made {places[0]}",
            "move it elsewhere, or delete it yourself",
        )  # fmt: skip
    if found is not None and found.step not in (*state.DONE, state.Step.LET_GO):
        work.let_go()  # which says how to end it
    freed = kept.freed_bytes([*places, work.folders.upgrade])
    shown: dict[str, Any] = {"freed_bytes": freed, "deleted": [str(place) for place in places]}
    if not as_json:
        for place in places:
            say(f"{place}: there will be no going back to it")
        say(f"this frees {freed:,} bytes")
    if not yes:
        refuse_unanswered("--done asks first")
        typer.confirm("Delete what is kept?", abort=True)
    work.let_go()
    if as_json:
        print_json(shown)
    else:
        say("nothing of before is kept any more")
