"""`twinlake changelog`: sends the changes of a live table to a topic, or no more; shows what is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.base.job import batches_text
from twinlake.cli.job_options import Asked, asking
from twinlake.cli.jobs import AS_JSON, follow, lake_client
from twinlake.cli.output import print_json, say, show_rows
from twinlake.server.job_models import ChangelogParams


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("changelog")(changelog_command)


@asking(ChangelogParams)
def changelog_command(
    *,
    table: Annotated[str | None, typer.Argument(help="{about}; without it, list all")] = None,
    asked: Asked,
    as_json: AS_JSON = False,
) -> None:
    """Send the changes of a table to a Kafka topic from now on, or show those that are sent."""
    changes = "topic" in asked or "stop" in asked
    if "topic" in asked and "stop" in asked:
        raise UsageError("--topic and --stop are opposites", "", "give one of them")
    if table is None and changes:
        raise UsageError("no table is named", "a changelog is one table's", "name it before the options")
    client = lake_client()
    if changes:
        found = [follow(client, client.submit("changelog", {"table": table, **asked})).succeeded()]
    else:
        found = [one for one in client.status()["changelogs"] if table in (None, one["table"])]
    if as_json:
        print_json(found)
    elif found:
        show_changelogs(found)
    else:
        say("no changelog is on" if table is None else f"the changelog of {table} is not on")


def show_changelogs(found: Iterable[Mapping[str, Any]]) -> None:
    """A line each."""
    rows = []
    for one in found:
        colour = {"failing": "red", "sending": "green"}.get(one["state"], "yellow")
        release = "" if one["release"] is None else str(one["release"])
        last = f"{one['records']:,} by {one['way']}, {one['sent_at']}" if one["sent_at"] else ""
        position = batches_text(one["position"])
        rows.append((one["table"], one["topic"], (one["state"], colour), release, position, last))
    show_rows(("changelog of", "topic", "state", "release", "position", "records sent last"), rows)
