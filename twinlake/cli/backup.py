"""`twinlake backup`, `restore`: copies of the lake elsewhere, taken while it is written to; the way back."""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from typer.core import TyperGroup

from twinlake.backup.archive import Archive, Backup, telling_of_stores
from twinlake.backup.check import check
from twinlake.base.errors import UsageError
from twinlake.base.job import Progress as Done
from twinlake.base.job import Run
from twinlake.base.location import Location, located
from twinlake.cli.jobs import AS_JSON
from twinlake.cli.output import load_settings, print_json, say, show_rows, tell
from twinlake.cli.progress import bar_of
from twinlake.config.settings import Settings
from twinlake.server.client import SAID_EVERY_S

FOLDER = Annotated[str, typer.Argument(help="the folder of backups: a path, or an hdfs:// address")]
SET_FOLDER = Annotated[str | None, typer.Argument(
    help="a folder of backups: a path, or an hdfs:// address; that of [backup] in twinlake.toml unless given"
)]  # fmt: skip
ID = Annotated[str | None, typer.Option("--id", help="this backup; the newest unless given")]
KEEP = Annotated[int | None, typer.Option(
    min=1, help="let all but so many backups go; unless given as many as [backup] says, in its folder alone"
)]  # fmt: skip


class _Backup(TyperGroup):
    """`twinlake backup`, with DIR and options or without, is `twinlake backup take`."""

    alone = "take"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_taken = not args or args[0] not in (*self.commands, "--help")
        if is_taken and not ctx.resilient_parsing:  # as it is while a shell completes
            args = [self.alone, *args]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Adds the commands about backups."""
    group = typer.Typer(
        cls=_Backup,
        help="Copies of the lake elsewhere, taken while it is written to: `twinlake backup DIR` takes one, "
        "as `twinlake backup take DIR` does.",
    )  # fmt: skip
    group.command("take")(take_command)
    group.command("list")(list_command)
    group.command("verify")(verify_command)
    app.add_typer(group, name="backup")
    app.command("restore")(restore_command)


def take_command(folder: SET_FOLDER = None, keep: KEEP = None, as_json: AS_JSON = False) -> None:
    """Take a backup of logs, tables, releases, certificates, plans, audit log, settings and users.

    Nothing stops for it. What an earlier backup in the folder has is not copied again.
    """
    from twinlake.backup.take import take_and_keep  # it reads Parquet, for which no other command waits

    settings = load_settings()
    place = _place(folder) if folder is not None else _set_place(settings)
    if folder is None and keep is None:
        keep = settings.values.backup.keep
    with _working("backup") as run:
        taken = take_and_keep(settings, place, keep, run)
    if as_json:
        print_json(taken.to_json())
        return
    made = taken.backup
    say(f"backup {made.id} is whole: {_words(made)}, of which {made.copied:,} bytes were copied")
    if taken.removed:
        say(f"removed: {', '.join(taken.removed)}")
    tell(f"next: twinlake backup verify{'' if folder is None else f' {folder}'}")


def list_command(folder: SET_FOLDER = None, as_json: AS_JSON = False) -> None:
    """Show the backups in a folder, the newest first."""
    archive = _archive(folder)
    with telling_of_stores(archive.folder):
        found = archive.all()
    if as_json:
        print_json([one.to_json() for one in found])
        return
    show_rows(
        ("backup", "release", "logs", "files", "bytes", "copied"),
        [
            (one.id, str(one.release or ""), _logs(one), f"{len(one.files):,}", f"{one.bytes:,}",
             f"{one.copied:,}")
            for one in found
        ],
    )  # fmt: skip


def verify_command(folder: SET_FOLDER = None, id: ID = None, as_json: AS_JSON = False) -> None:
    """Read a backup back, all of it; exit code 1 where a file is gone or has changed."""
    archive = _archive(folder)
    with telling_of_stores(archive.folder), _working("verify") as run:
        found = check(archive, archive.load(id), run)
    if as_json:
        print_json(found.to_json())
    elif found.is_whole:
        say(f"backup {found.id} is whole: {found.files:,} files, {found.bytes:,} bytes were read")
    else:
        say(f"backup {found.id} is damaged: {found.differing:,} of {found.files:,} files are not as written")
        for one in found.wrong:
            say(f"  {one}")
        tell("Do: restore another one (`twinlake backup list`), and take a new one in another folder")
    if not found.is_whole:
        raise typer.Exit(1)


def restore_command(folder: FOLDER, id: ID = None, as_json: AS_JSON = False) -> None:
    """Make a data directory of a backup: the one of --home, which has to be empty or missing.

    `twinlake up` starts it then; what Kafka has had since is read from there, once.
    """
    from twinlake.backup.restore import restore

    archive, settings = Archive(_place(folder)), load_settings()
    with telling_of_stores(archive.folder):
        backup = archive.load(id)
        lake = _lake(archive, backup, settings)
    with telling_of_stores(archive.folder, lake), _working("restore") as run:
        restore(archive, backup, settings.home, lake, run)
    if as_json:
        print_json({**backup.to_json(), "home": str(settings.home), "lake": str(lake)})
        return
    say(f"backup {backup.id} is restored in {settings.home}: {_words(backup)}")
    say("start it: `twinlake up`. Tokens and passwords of services are new; users keep theirs.")


def _archive(folder: str | None) -> Archive:
    return Archive(_place(folder) if folder is not None else _set_place(load_settings()))


def _set_place(settings: Settings) -> Location:
    if (place := settings.values.backup.place) is None:
        raise UsageError(
            "no folder of backups is set", "`folder` in [backup] of twinlake.toml names none",
            "set it, or name one here: `twinlake backup DIR`",
        )  # fmt: skip
    return place


def _place(text: str) -> Location:
    if not text:
        raise UsageError("no folder is named", "it is empty", "name one for backups alone, on another disk")
    return located(text) if "://" in text else Path(text).expanduser().absolute()


def _lake(archive: Archive, backup: Backup, settings: Settings) -> Location:
    """Where the backup's own settings have the lake."""
    from twinlake.backup.restore import settings_of

    text = settings_of(archive, backup)
    if text is None:
        return settings.home / "lake"
    uri = tomllib.loads(text).get("lake", {}).get("uri", "")
    return located(uri) if uri else settings.home / "lake"


def _words(one: Backup) -> str:
    return f"{len(one.files):,} files, {one.bytes:,} bytes, {_logs(one)}"


def _logs(one: Backup) -> str:
    return ", ".join(f"{topic} up to batch {batch:,}" for topic, batch in one.logs.items()) or "no log"


@contextmanager
def _working(title: str) -> Iterator[Run]:
    """A run that shows how far it is, and ends where nothing is half done by ^C."""
    if not sys.stderr.isatty():
        yield Run(id=title, report=_now_and_then(title))
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with bar_of(*columns) as bar:
        task = bar.add_task(title, total=None)
        yield Run(id=title, report=lambda one: bar.update(
            task, total=one.total or None, completed=one.done, description=one.message or title,
        ))  # fmt: skip


def _now_and_then(title: str) -> Callable[[Done], None]:
    last = time.monotonic()

    def tell_if_due(one: Done) -> None:
        nonlocal last
        if time.monotonic() - last >= SAID_EVERY_S:
            last = time.monotonic()
            tell(f"{title}: {one.message}, {one.done:,.0f} of {one.total:,.0f} {one.unit}")

    return tell_if_due
