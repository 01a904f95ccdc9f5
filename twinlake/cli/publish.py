"""`twinlake publish`: keeps a live table as a plain Delta table for other engines, or no more; shows which
are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.base.job import batches_text
from twinlake.cli.job_options import Asked, asking
from twinlake.cli.jobs import AS_JSON, follow, lake_client
from twinlake.cli.output import print_json, say, say_failures, show_rows
from twinlake.server.job_models import PublishParams


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("publish")(publish_command)


@asking(PublishParams)
def publish_command(
    *,
    table: Annotated[str | None, typer.Argument(help="{about}; without it, list all")] = None,
    asked: Asked,
    list_all: Annotated[
        bool, typer.Option("--list", help="change nothing: list what is published, or this table")
    ] = False,
    as_json: AS_JSON = False,
) -> None:
    """Keep a live table as a plain Delta table that deltalake, polars, DuckDB and others read.

    It is in `<lake>/published/<table>`: whoever can read that folder reads every row and column.
    """
    if "stop" in asked and list_all:
        raise UsageError("--list and --stop are opposites", "", "give one of them")
    if table is None and asked:
        raise UsageError("no table is named", "one table at a time", "name it before the options")
    client = lake_client()
    if table is not None and not list_all:
        found = [follow(client, client.submit("publish", {"table": table, **asked})).succeeded()]
    else:
        found = [one for one in client.status_when_ready()["published"] if table in (None, one["table"])]
    if as_json:
        print_json(found)
    elif found:
        show_published(found)
        say_failures("published", found)
    else:
        say("no table is published" if table is None else f"table {table} is not published")


def show_published(found: Iterable[Mapping[str, Any]]) -> None:
    """A line each."""
    rows = []
    for one in found:
        colour = {"failing": "red", "stalled": "red", "published": "green"}.get(one["state"], "yellow")
        release = "" if one["release"] is None else str(one["release"])
        last = f"{one['changed']:,} by {one['way']}, {one['published_at']}" if one["published_at"] else ""
        behind = f"{max(one['behind'].values()):,} batches" if one["behind"] else ""
        position = batches_text(one["position"])
        rows.append((one["table"], (one["state"], colour), release, position, behind, last, one["folder"]))
    show_rows(
        ("published", "state", "release", "position", "behind", "rows written last", "folder"), rows
    )  # fmt: skip
