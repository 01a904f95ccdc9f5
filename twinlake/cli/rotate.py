"""`twinlake rotate`: other tokens and passwords for those that Twinlake made, while everything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.cli.jobs import AS_JSON, lake_client
from twinlake.cli.options import names_in, whole
from twinlake.cli.output import load_settings, print_json, say, show_rows, tell
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.own_files import own_files
from twinlake.services.rotated import NAMES
from twinlake.services.rotation import GRACE_S, LONGEST_GRACE_S, Rotation, unfinished
from twinlake.services.supervise.control import one_command


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("rotate")(rotate)


def rotate(
    only: Annotated[
        str | None,
        typer.Option(metavar="A,B", help=f"secrets to rotate; all unless given: {', '.join(NAMES)}"),
    ] = None,
    grace: Annotated[
        int,
        typer.Option(
            parser=whole(), metavar="SECONDS",
            help=f"how long the old ones hold beside the new ones, at most {LONGEST_GRACE_S:.0f}",
        ),
    ] = int(GRACE_S),
    reason: Annotated[str | None, typer.Option(help="why, for the audit log")] = None,
    as_json: AS_JSON = False,
) -> None:  # fmt: skip
    """Make other tokens and passwords while everything runs; services.json has the new ones.

    The old ones are refused within a minute. Killed meanwhile it leaves services.json valid: run it again.
    """
    if grace > LONGEST_GRACE_S:
        raise UsageError(
            f"--grace {grace} is too long", "old secrets are refused within a minute",
            f"give at most {LONGEST_GRACE_S:.0f}",
        )  # fmt: skip
    names = names_in("--only", only)
    settings = load_settings()
    settings.services()  # which says where nothing was started
    with one_command(folders_of(settings)):
        if left := unfinished(folders_of(settings)):
            tell(f"an earlier rotation was not finished; {', '.join(left)} are rotated again")
        done = Rotation(
            settings=settings, grace_s=grace, say=tell,
            audit=lambda rotated: _note(settings, rotated, reason),
        ).run(names)  # fmt: skip
    theirs = own_files(settings.values)
    if as_json:
        print_json({"rotated": [asdict(one) for one in done], "own_files": [asdict(one) for one in theirs]})
        return
    show_rows(
        ("secret", "new one from", "old one refused"),
        [
            (one.name, f"{one.replaced_s} s", f"{one.refused_s} s" if one.answered else "with its next start")
            for one in done
        ],
    )
    say(f"the new ones are in {settings.services_file}")
    for one in theirs:
        tell(f"{one.setting} is yours to change: a new {one.file} holds {one.holds}")


def _note(settings: Settings, names: Sequence[str], reason: str | None) -> None:
    """In the audit log, before it is done. A lake server that is away keeps nobody from it."""
    try:
        lake_client(settings, why=reason).secrets_rotated(names)
    except UnreachableError as error:
        tell(f"the audit log does not have this: {error.what} ({error.why or error.remedy})")
