"""`twinlake rebuild`, `verify` and `jobs list|follow|cancel`: ask the lake server and follow the job."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid

from jobs.commands.output import console, load_settings, print_json
from jobs.errors import TwinlakeError
from jobs.times import parse_moment

if TYPE_CHECKING:
    from jobs.server.client import LakeClient

AS_JSON = Annotated[bool, typer.Option("--json", help="print the result as JSON")]
KEY = Annotated[str | None, typer.Option(help="idempotency key: the same key finds the same job again")]
SHOWN = 10
LOG_SECONDS = 5.0


def register(app: typer.Typer) -> None:
    """Adds the commands about the batch layer and its jobs."""
    app.command("rebuild")(rebuild_command)
    app.command("verify")(verify_command)
    jobs = typer.Typer(help="Jobs of the lake server.", no_args_is_help=True)
    jobs.command("list")(list_command)
    jobs.command("follow")(follow_command)
    jobs.command("cancel")(cancel_command)
    app.add_typer(jobs, name="jobs")


def rebuild_command(
    table: Annotated[str, typer.Argument(help="the table to compute again from its log")],
    start: Annotated[str | None, typer.Option("--from", help="first window start, RFC 3339")] = None,
    end: Annotated[str | None, typer.Option("--to", help="window starts before this, RFC 3339")] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="replace even where speed and batch differ")
    ] = False,
    version: Annotated[str | None, typer.Option(help="this version; the live one unless given")] = None,
    key: KEY = None,
    as_json: AS_JSON = False,
) -> None:
    """Replace all closed history of a table by what the log gives, beside the running stream."""
    asked = {"table": table, "version": version, "from": start, "to": end, "repair": repair}
    _certify("rebuild", {name: value for name, value in asked.items() if value is not None}, key, as_json)


def verify_command(
    table: Annotated[str, typer.Argument(help="the table to compare with its log")],
    repair: Annotated[bool, typer.Option("--repair", help="rebuild it where speed and batch differ")] = False,
    version: Annotated[str | None, typer.Option(help="this version; the live one unless given")] = None,
    key: KEY = None,
    as_json: AS_JSON = False,
) -> None:
    """Compare what speed wrote with what batch computes, at one position, and store the certificate."""
    asked = {"table": table, "version": version, "repair": repair}
    _certify("verify", {name: value for name, value in asked.items() if value is not None}, key, as_json)


def list_command(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="how many, newest first")] = 20,
    as_json: AS_JSON = False,
) -> None:
    """The jobs of this lake, newest first."""
    found = _client().jobs(limit)
    if as_json:
        print_json(found)
        return
    grid = Grid(box=None, pad_edge=False)
    for title in ("job", "kind", "state", "created", "seconds"):
        grid.add_column(title, no_wrap=True)
    grid.add_column("parameters and progress", overflow="fold")
    for job in found:
        params = ", ".join(
            f"{name}={value}"
            for name, value in job["params"].items()
            if value not in (None, False) and not isinstance(value, dict)
        )
        words = params if job["ended_at"] else f"{params} ({_progress_text(job)})"
        cells = (job["id"], job["kind"], job["state"], job["created_at"][:19], _seconds(job), words)
        grid.add_row(*map(escape, cells))
    console.print(grid)


def follow_command(
    id: Annotated[str, typer.Argument(help="a job's id, see `twinlake jobs list`")], as_json: AS_JSON = False
) -> None:
    """Follow a job to its end; exit code 1 when it did not succeed."""
    client = _client()
    try:
        job = follow(client, client.job(id))
    except TwinlakeError as error:
        if not as_json or not hasattr(error, "job"):
            raise
        job = error.job
    if as_json:
        print_json(job)
    else:
        console.print(f"job {job['id']} ({job['kind']}) {job['state']}")
    if job["state"] != "succeeded":
        raise typer.Exit(1)


def cancel_command(
    id: Annotated[str, typer.Argument(help="a job's id, see `twinlake jobs list`")], as_json: AS_JSON = False
) -> None:
    """Ask a job to end where nothing is half done."""
    client = _client()
    client.cancel(id)
    job = client.job(id, wait_s=20)
    if as_json:
        print_json(job)
    else:
        console.print(f"job {job['id']} ({job['kind']}) is {job['state']}")


def follow(client: LakeClient, job: dict[str, Any]) -> dict[str, Any]:
    """Follow with a bar and the time left on a terminal, a line now and then elsewhere."""
    with _reporter(f"{job['kind']} {job['params'].get('table', '')}".strip(), job["id"]) as report:
        return client.follow(job["id"], on_progress=report)


def _certify(kind: str, params: dict[str, Any], key: str | None, as_json: bool) -> None:
    client = _client()
    try:
        job = follow(client, client.submit(kind, params, key))
    except TwinlakeError as error:
        if not hasattr(error, "job") or error.job["result"] is None:
            raise
        job = error.job
    result = job["result"]
    if as_json:
        print_json({"job": job["id"], "state": job["state"], **result})
    else:
        _show(kind, result)
    if not result["equal"]:
        raise typer.Exit(1)


def _show(kind: str, result: dict[str, Any]) -> None:
    place = ", ".join(f"{topic} batch {batch}" for topic, batch in result["position"].items())
    verdict = "[green]equal[/]" if result["equal"] else "[bold red]NOT equal[/]"
    name = escape(f"{result['table']} {result['version']}")
    console.print(
        f"{name}: speed and batch are {verdict} at {place}, {result['rows_compared']:,} rows compared"
    )
    for title, found in (("differs", result["differences"]), ("was repaired", result.get("repaired", []))):
        for one in found[:SHOWN]:
            key = ", ".join(f"{column}={value}" for column, value in one["key"].items())
            console.print(f"  {title}: {escape(key)} ({one['cause']}: {one['why']})", soft_wrap=True)
            console.print(
                f"    speed {escape(str(one['speed']))}\n    batch {escape(str(one['batch']))}",
                soft_wrap=True,
            )
        if len(found) > SHOWN:
            console.print(f"  and {len(found) - SHOWN} more, see --json")
    if kind == "rebuild" and not result["equal"] and not result.get("replaced"):
        console.print("nothing was replaced; add --repair to replace what speed wrote by what batch computed")


@contextmanager
def _reporter(title: str, id: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    if not sys.stderr.isatty():
        yield _line_reporter(title, id)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(),
               TextColumn("{task.fields[text]}"),
               TimeElapsedColumn())  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(escape(title), total=None, text=id)
        yield lambda job: bar.update(
            task, total=job["progress"].get("total") or None, completed=job["progress"].get("done") or 0,
            text=escape(_progress_text(job)),
        )  # fmt: skip


def _line_reporter(title: str, id: str) -> Callable[[dict[str, Any]], None]:
    last: dict[str, Any] = {"state": "", "at": 0.0}

    def line(job: dict[str, Any]) -> None:
        if job["state"] != last["state"] or time.monotonic() - last["at"] >= LOG_SECONDS:
            last.update(state=job["state"], at=time.monotonic())
            console.print(f"{escape(title)} (job {id}): {escape(_progress_text(job))}", soft_wrap=True)

    return line


def _progress_text(job: dict[str, Any]) -> str:
    progress = job.get("progress") or {}
    parts = [job["state"]]
    if not job["ended_at"]:
        if progress.get("total"):
            parts.append(f"{progress['done']:,.0f} of {progress['total']:,.0f} {progress['unit']}")
        if progress.get("message"):
            parts.append(progress["message"])
        if progress.get("eta_s") is not None:
            parts.append(f"about {progress['eta_s']:.0f} s left")
    return ", ".join(parts)


def _seconds(job: dict[str, Any]) -> str:
    if not job["started_at"]:
        return ""
    end = parse_moment(job["ended_at"]) if job["ended_at"] else datetime.now(UTC)
    return f"{(end - parse_moment(job['started_at'])).total_seconds():.1f}"


def _client() -> LakeClient:
    from jobs.server.client import LakeClient

    return LakeClient.of(load_settings().services())
