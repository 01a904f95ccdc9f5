"""`twinlake query "SQL"`: asks the SQL server, as any reader would."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from jobs.commands.output import load_settings, print_json, show_rows, tell
from jobs.errors import UsageError
from jobs.reading.client import ask


def register(app: typer.Typer) -> None:
    """Adds the one command that reads."""
    app.command("query")(query_command)


def query_command(
    sql: Annotated[
        str, typer.Argument(help="one statement that reads, such as SELECT * FROM serve.orders LIMIT 5")
    ],
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="at most so many rows")] = 10_000,
    as_of: Annotated[
        str | None,
        typer.Option(
            help="read serve as it was: release:3, position:orders=120, or a time like 2026-01-31T12:00:00Z"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print a list of row objects")] = False,
) -> None:
    """Run a query on the views of the live release."""
    if not sql.strip():
        raise UsageError("there is no statement", "the text is empty", 'give one, like "SHOW VIEWS IN serve"')
    found = ask(load_settings().services(), sql, limit, as_of)
    if as_json:
        print_json(found["rows"])
    else:
        _show(found)
    if told := found.get("as_of"):
        _tell_moment(told)
    if found["truncated"]:
        tell((f"only the first {limit:,} rows; there are more, see --limit", "yellow"))


def _show(found: dict[str, Any]) -> None:
    names = [column["name"] for column in found["columns"]]
    show_rows(names, ([_text(row[name]) for name in names] for row in found["rows"]))
    count = len(found["rows"])
    released = f", release {found['release']}" if found["release"] is not None else ""
    tell(f"{count:,} row{'' if count == 1 else 's'}{released}")


def _tell_moment(told: dict[str, Any]) -> None:
    """Which moment it was, so that the same can be asked again, and what was not read but computed."""
    position = ", ".join(f"{topic} batch {batch}" for topic, batch in told["position"].items())
    tell(f"as of release {told['release']}" + (f", {position}" if position else ""))
    for one in told["computed"]:
        tell((f"{one['table']} was computed from the log: {one['why']}", "yellow"))


def _text(value: Any) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
