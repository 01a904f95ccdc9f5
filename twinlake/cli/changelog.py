"""`twinlake changelog`: sends the changes of a live table to a topic, or its rows as events, or no more, and
shows what is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.base.job import batches_text
from twinlake.cli.job_options import Asked, asking
from twinlake.cli.jobs import AS_JSON, follow, lake_client
from twinlake.cli.options import names_in
from twinlake.cli.output import print_json, say, say_failures, show_rows
from twinlake.server.job_models import ChangelogParams


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("changelog")(changelog_command)


@asking(ChangelogParams)
def changelog_command(
    *,
    table: Annotated[str | None, typer.Argument(help="{about}; without it, list all")] = None,
    asked: Asked,
    topics: Annotated[str | None, typer.Option(metavar="A,B", help="{about}")] = None,
    key: Annotated[str | None, typer.Option(metavar="A,B", help="{about}")] = None,
    as_json: AS_JSON = False,
) -> None:
    """Send the changes of a table to a Kafka topic from now on, or its rows as events to one or several.

    Without an option it shows those that are sent. All options but --topic, --stop and --json are for tables
    whose rows never change (Events).
    """
    named = {"topics": names_in("--topics", topics), "key": names_in("--key", key)}
    asked = {**asked, **{name: one for name, one in named.items() if one}}
    does = [
        f"--{name.replace('_', '-')}" for name in ("topic", "topic_from", "resend", "stop") if name in asked
    ]
    if len(does) > 1:
        raise UsageError(f"{' and '.join(does)} were given", "they exclude each other", "give one of them")
    if asked and not does:
        raise UsageError(
            "nothing says where to send it", "the options are for a changelog that starts",
            "give --topic, or --topic-from with --topics",
        )  # fmt: skip
    if table is None and asked:
        raise UsageError("no table is named", "a changelog is one table's", "name it before the options")
    client = lake_client()
    if asked:
        found = [follow(client, client.submit("changelog", {"table": table, **asked})).succeeded()]
    else:
        found = [one for one in client.status_when_ready()["changelogs"] if table in (None, one["table"])]
    if as_json:
        print_json(found)
    elif found:
        show_changelogs(found)
        say_failures("changelog of", found)
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
