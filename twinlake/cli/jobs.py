"""`twinlake jobs list|follow|cancel`, and how every command follows the job that it asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from getpass import getuser
from typing import Annotated

import typer
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

from twinlake.base.errors import UsageError, visible
from twinlake.base.job import Asker, Job
from twinlake.base.times import parse_moment, utc_now
from twinlake.cli.options import whole
from twinlake.cli.output import load_settings, print_json, say, show_rows, tell
from twinlake.cli.progress import bar_of
from twinlake.config.settings import Settings
from twinlake.server.client import TIMEOUT_S, LakeClient, now_and_then

AS_JSON = Annotated[bool, typer.Option("--json", help="print the result as JSON")]
KEY = Annotated[str | None, typer.Option(help="idempotency key: the same key finds the same job again")]


def register(app: typer.Typer) -> None:
    """Adds the commands about jobs of the lake server."""
    jobs = typer.Typer(help="Jobs of the lake server.", no_args_is_help=True)
    jobs.command("list")(list_command)
    jobs.command("follow")(follow_command)
    jobs.command("cancel")(cancel_command)
    app.add_typer(jobs, name="jobs")


def list_command(
    limit: Annotated[
        int, typer.Option(parser=whole(1, 1000), metavar="NUMBER", help="how many, newest first")
    ] = 20,
    as_json: AS_JSON = False,
) -> None:
    """The jobs of this lake, newest first."""
    found = lake_client().jobs(limit)
    if as_json:
        print_json([job.to_json() for job in found])
        return
    rows = []
    for job in found:
        params = ", ".join(
            f"{name}={value}"
            for name, value in job.params.items()
            if value not in (None, False) and not isinstance(value, dict)
        )
        words = params if job.ended_at else f"{params} ({job.summary()})"
        rows.append((job.id, job.kind, job.state, job.created_at[:19], _seconds(job), words))
    show_rows(("job", "kind", "state", "created", "seconds", "parameters and progress"), rows)


def follow_command(
    id: Annotated[str, typer.Argument(help="a job's id, see `twinlake jobs list`")], as_json: AS_JSON = False
) -> None:
    """Follow a job to its end; exit code 1 when it did not succeed."""
    client = lake_client()
    job = follow(client, client.job(id))
    if as_json:
        print_json(job.to_json())
    else:
        job.succeeded()  # or its error, which the command line shows
        say(f"job {job.id} ({job.kind}) {job.state}")
    if job.state != "succeeded":
        raise typer.Exit(1)


def cancel_command(
    id: Annotated[str, typer.Argument(help="a job's id, see `twinlake jobs list`")], as_json: AS_JSON = False
) -> None:
    """Ask a job to end where nothing is half done; exit code 2 where it has ended already."""
    client = lake_client()
    if (job := client.job(id)).ended:
        raise UsageError(f"job {id} cannot be cancelled", f"it has ended: {job.state}", "")
    client.cancel(id)
    job = client.job(id, wait_s=20)
    if as_json:
        print_json(job.to_json())
    else:
        say(f"job {job.id} ({job.kind}) is {job.state}")


def follow(client: LakeClient, job: Job) -> Job:
    """Follow with a bar and the time left on a terminal, a line now and then elsewhere."""
    with _reporter(f"{job.kind} {job.params.get('table') or ''}".strip(), job.id) as report:
        try:
            return client.follow(job.id, on_progress=report)
        except KeyboardInterrupt:
            tell(
                f"job {job.id} goes on: `twinlake jobs follow {job.id}` follows it, "
                f"`twinlake jobs cancel {job.id}` ends it"
            )
            raise


@contextmanager
def _reporter(title: str, id: str) -> Iterator[Callable[[Job], None]]:
    if not sys.stderr.isatty():
        yield now_and_then(lambda job: tell(f"{title} (job {id}): {job.summary()}"))
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(),
               TextColumn("{task.fields[text]}", markup=False),
               TimeElapsedColumn())  # fmt: skip
    with bar_of(*columns) as bar:
        task = bar.add_task(visible(title), total=None, text=id)
        yield lambda job: bar.update(
            task, total=job.progress.get("total") or None, completed=job.progress.get("done") or 0,
            text=visible(job.summary()),
        )  # fmt: skip


def _seconds(job: Job) -> str:
    if not job.started_at:
        return ""
    end = parse_moment(job.ended_at) if job.ended_at else utc_now()
    return f"{(end - parse_moment(job.started_at)).total_seconds():.1f}"


def lake_client(
    settings: Settings | None = None, why: str | None = None, timeout_s: float = TIMEOUT_S
) -> LakeClient:
    """The client of the lake server that runs for this home; UnreachableError without one.

    `why` is what the audit log has as the reason of what is asked for.
    """
    asker = Asker(by=this_user(), via="cli", why=why or None)
    of = settings or load_settings()
    return LakeClient.of(of.services(), asker, timeout_s, read_again=of.services)


def named(given: str | None, flag: str) -> str:
    """Who does something: whom the flag names, else the user of this shell."""
    if given is not None:
        return given
    if (user := this_user()) is None:
        raise UsageError("nobody is named", "this user has no name here", f"add {flag} NAME")
    return user


def this_user() -> str | None:
    """The user of this shell, where they have a name here."""
    try:
        return getuser()
    except (KeyError, OSError):
        return None
