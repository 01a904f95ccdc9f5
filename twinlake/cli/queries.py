"""`twinlake queries [cancel]`: what the SQL server runs for whom, and how one of them is ended."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.cli.jobs import AS_JSON, lake_client
from twinlake.cli.output import load_settings, print_json, say, show_rows, tell
from twinlake.config.settings import Services
from twinlake.reading.facts_client import cancel, find, running
from twinlake.reading.server_address import named_server

LONGEST_SQL = 100
"""Characters of a statement in a row; `--json` has more."""


def register(app: typer.Typer) -> None:
    """Adds the commands about what the SQL server runs."""
    queries = typer.Typer()
    queries.callback(invoke_without_command=True)(list_command)
    queries.command("cancel")(cancel_command)
    app.add_typer(queries, name="queries")


def list_command(context: typer.Context, as_json: AS_JSON = False) -> None:
    """The running queries at the SQL server, with user, age and memory, the oldest first; or end one.

    By the login of the first user, an admin; by one that TWINLAKE_SQL_URL, _USER and _PASSWORD name, what
    that user sees: an analyst their own.
    """
    if context.invoked_subcommand:
        return
    found = running(_server())
    if as_json:
        print_json(found)
    elif not found:
        say("no query is running")
    else:
        names = ("id", "user", "by", "state", "seconds", "memory", "statement")
        show_rows(names, [_row(one) for one in found])


def cancel_command(
    id: Annotated[str, typer.Argument(help="a query's id, see `twinlake queries`")],
    reason: Annotated[
        str | None, typer.Option(help="why, for its client and for the audit log", metavar="TEXT")
    ] = None,
    as_json: AS_JSON = False,
) -> None:
    """End a query; its client gets an error that says who has done it, and why.

    The audit log has it first: without the lake server only a query by the same login can be ended.
    """
    if reason is not None and not reason.strip():
        raise UsageError("--reason says nothing", "it is empty", "leave it out, or say why")
    services = _server()
    found = find(services, id)
    query = cancel(services, found, lambda query: lake_client(why=reason).query_cancelled(query))
    if as_json:
        print_json(query)
    else:
        say(f"query {id} of {query['user']} is ending")
        tell("its client gets an error that says so; see `twinlake queries`")


def _server() -> Services:
    """The SQL server that variables name; else that of the data directory, by the login that may see all."""
    if named := named_server(os.environ):
        return named
    services = load_settings().services()
    if not services.console_user:
        return services
    return replace(services, sql_user=services.console_user, sql_password=services.console_password)


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    memory = "not known" if one["memory_bytes"] is None else f"{one['memory_bytes']:,} bytes"
    sql = " ".join(one["sql"].split())
    shown = sql if len(sql) <= LONGEST_SQL else f"{sql[:LONGEST_SQL]}…"
    return (one["id"], one["user"], one["endpoint"], one["state"], f"{one['seconds']:.0f}", memory, shown)
