"""The commands around the local services: up, down, logs, reset."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from twinlake.base.errors import UsageError, visible
from twinlake.base.files import shown_path
from twinlake.cli.options import YES, names_in, whole
from twinlake.cli.output import load_settings, refuse_unanswered, say, tell
from twinlake.cli.progress import working
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.supervise import control
from twinlake.services.supervise.record import is_home, remove_state, tail
from twinlake.services.upgrade import state as upgrade


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (up, down, logs, reset):
        app.command()(command)


def up(
    only: Annotated[
        str | None, typer.Option(metavar="A,B", help="Services to start; what they need comes along.")
    ] = None,
    without: Annotated[str | None, typer.Option(metavar="A,B", help="Services to leave out.")] = None,
) -> None:
    """Start the services, wait until each really answers, and make the first release where there is none."""
    chosen, left_out = names_in("--only", only), names_in("--without", without)
    settings = load_settings()
    from twinlake.backup.restore import refuse_unfinished
    from twinlake.cli.doctor import check_given
    from twinlake.cli.first_release import ensure_release
    from twinlake.setup.ensure import ensure_jars
    from twinlake.spark.cluster import check_master

    settings.refuse_incomplete()
    refuse = partial(upgrade.refuse_start, folders_of(settings))
    refuse()
    if isinstance(settings.lake, Path):
        refuse_unfinished(settings.lake)
    ensure_jars(settings, os.environ, tell)
    given = settings.values.given
    parts = control.choose(chosen, left_out, given)
    missing = {part.service for part in parts} & {"lake", "sql"}  # what the first release takes
    needs_release = "lake" in missing
    with working("asking the external services"):
        if needs_release:
            check_master(settings.values)
        check_given(settings, [name for name in (*given, "lake") if name in {part.service for part in parts}])
    if needs_release and not _lake_answers(settings):  # one that runs goes on with the files that it has
        from twinlake.cli.check import refuse_stranding

        refuse_stranding(settings)
    with working("starting", len({part.service for part in parts}) + needs_release) as waiting:
        for ready in control.bring_up(settings, parts, os.environ, tell, refuse=refuse):
            took = (f"  {ready.seconds:.1f} s", "dim")
            whose = "external" if ready.given else "embedded"
            say(("ok", "green"), f" {ready.service:<9} {whose:<9} {ready.answer}", took)
            waiting.advance()
            missing.discard(ready.service)
            if needs_release and not missing:
                needs_release = False
                if made := ensure_release(settings, waiting.update):
                    say(("ok", "green"), f" {'release':<9} {'':<9} {made}")
                waiting.advance()
    services = settings.services()
    started = {part.service for part in parts if not part.given}
    logins = [
        ("airflow", services.airflow_user, "airflow"), ("sql", services.sql_user, "JDBC and reports"),
        ("lake", services.metrics_user, services.lake_metrics_url),
        ("sql", services.metrics_user, services.sql_metrics_url),
        ("console", services.metrics_user, services.console_metrics_url),
        ("console", services.console_user, "the console"),
    ]  # fmt: skip
    passwords = shown_path(settings.services_file)
    for service, user, endpoint in logins:
        if service in started and endpoint:
            say(f"   {'login':<9} {user} for {endpoint}; its password is in {passwords}")
    tell(f"next: twinlake status{', or twinlake open for the console' if 'console' in started else ''}")


def down() -> None:
    """End exactly what was started."""
    settings = load_settings()
    if not folders_of(settings).run.exists():
        tell("nothing was started")
        return
    ended: list[str] = []

    def note(name: str) -> None:
        ended.append(name)
        tell(f"ended {name}")

    with working("ending"):
        control.bring_down(settings, note)
    if not ended:
        tell("nothing was running")


def logs(
    name: Annotated[
        str, typer.Argument(help="A service or process: broker, lake, airflow, airflow-scheduler, ...")
    ],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on showing what comes.")] = False,
    lines: Annotated[
        int,
        typer.Option("-n", "--lines", parser=whole(), metavar="NUMBER", help="How many lines of the past."),
    ] = 50,
) -> None:
    """Show the log of a service, or of one of its processes."""
    files = control.log_files(load_settings(), name)
    shown_to = {file: file.stat().st_size if file.exists() else 0 for file in files}
    written = [file for file in files if shown_to[file]]
    if not written:
        tell(f"{name} has not written anything yet")
    for file in written:
        if len(files) > 1:
            tell(f"==> {file.stem} <==")
        for line in tail(file, lines):
            print(_readable(line))
    if follow:
        _follow(shown_to)


def reset(yes: YES = False) -> None:
    """End the services and remove the lake, the topics and everything else in $TWINLAKE_HOME."""
    settings = load_settings()
    if not settings.home.exists():
        tell("there is no data directory to remove")
        return
    if not is_home(folders_of(settings)):
        raise UsageError(
            f"{settings.home} is not a data directory of Twinlake's", "it was never started there",
            "name the right folder with --home",
        )  # fmt: skip
    is_elsewhere = settings.lake != settings.home / "lake"
    if not yes:
        refuse_unanswered("reset asks first")
        typer.confirm(f"Remove all records, tables and releases in {settings.home}?", abort=True)
    down()
    remove_state(folders_of(settings))
    tell(f"removed the data directory {settings.home}")
    if is_elsewhere:
        tell(f"the lake in {settings.lake} is left as it is: others may read it; delete it before the next "
             "`twinlake up`, or topics that are recreated stop until `twinlake topic accept`")  # fmt: skip


def _lake_answers(settings: Settings) -> bool:
    return any(part["part"] == "lake" and part["answers"] for part in control.describe(settings))


def _readable(text: str) -> str:
    """Without orders to a terminal: Spark logs the statements of readers, and values that fit no type."""
    return "\n".join(visible(line) for line in text.expandtabs().split("\n"))


def _follow(places: dict[Path, int]) -> None:
    try:
        while True:
            for file, place in places.items():
                size = file.stat().st_size if file.exists() else 0
                if size < place:
                    place = 0  # the log file was started again
                if size > place:
                    with open(file, errors="replace") as text:
                        text.seek(place)
                        print(_readable(text.read()), end="", flush=True)
                    places[file] = size
            time.sleep(0.3)
    except KeyboardInterrupt:
        return
