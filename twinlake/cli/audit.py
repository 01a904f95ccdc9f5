"""`twinlake audit`: who asked for what, by which way and why, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from twinlake.cli.jobs import AS_JSON
from twinlake.cli.local_lake import refuse_unreadable
from twinlake.cli.options import whole
from twinlake.cli.output import load_settings, print_json, say, show_rows
from twinlake.server.outcomes import WITHOUT_JOB, about

if TYPE_CHECKING:
    from twinlake.lake.catalog.audit_log import Act


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("audit")(audit_command)


def audit_command(
    limit: Annotated[
        int, typer.Option(parser=whole(1), metavar="NUMBER", help="how many, newest first")
    ] = 20,
    who: Annotated[str | None, typer.Option(help="only acts of this person")] = None,
    act: Annotated[str | None, typer.Option(help="only acts of this kind, like promote")] = None,
    table: Annotated[str | None, typer.Option(help="only acts on this table or topic")] = None,
    as_json: AS_JSON = False,
) -> None:
    """Who did what to the lake, by which way and why, and how it ended; newest first.

    By command line, Airflow, console or API alike. It reads the lake: the lake server need not run.
    """
    from twinlake.lake.catalog.audit_log import read_acts

    settings = load_settings()
    refuse_unreadable(settings)
    wanted = {"who": who, "act": act}
    found = [
        one
        for one in read_acts(settings.lake)
        if all(value in (None, getattr(one, name)) for name, value in wanted.items())
        if table is None or table in one.about
    ][:limit]
    if as_json:
        print_json([one.to_json() for one in found])
    elif not found:
        given = {**wanted, "table": table}.items()
        asked = [f"--{name} {value}" for name, value in given if value is not None]
        say(f"nothing in the audit log is of {' '.join(asked)}" if asked else "the audit log is empty")
    else:
        header = ("at", "who", "by way of", "act", "what", "why", "outcome", "job")
        show_rows(header, [_row(one) for one in found])


def _row(act: Act) -> tuple[str, ...]:
    outcome, job = act.outcome or "not ended", "" if act.act in WITHOUT_JOB else act.job
    return (act.at[:19], act.who, act.via, act.act, about(act.what), act.why or "", outcome, job)
