"""`twinlake webhook`: posts the changes of a live table to an address, or no more; shows what is posted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.base.job import batches_text
from twinlake.cli.job_options import Asked, asking
from twinlake.cli.jobs import AS_JSON, follow, lake_client
from twinlake.cli.output import print_json, say, say_failures, show_rows
from twinlake.server.job_models import WebhookParams


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("webhook")(webhook_command)


@asking(WebhookParams)
def webhook_command(
    *,
    table: Annotated[str | None, typer.Argument(help="{about}; without it, list all")] = None,
    asked: Asked,
    as_json: AS_JSON = False,
) -> None:
    """Post the changes of a table to an address from now on, or no more.

    Without an option it shows those that are posted.
    """
    if "stop" in asked and len(asked) > 1:
        raise UsageError("--stop goes with no other option", "it only ends what is there", "give it alone")
    if asked and "url" not in asked and "stop" not in asked:
        raise UsageError("nothing says where to post", "--from is for one that starts", "give --url")
    if table is None and asked:
        raise UsageError("no table is named", "a webhook is one table's", "name it before the options")
    client = lake_client()
    if asked:
        found = [follow(client, client.submit("webhook", {"table": table, **asked})).succeeded()]
    else:
        found = [one for one in client.status_when_ready()["webhooks"] if table in (None, one["table"])]
    if as_json:
        print_json(found)
    elif found:
        show_webhooks(found)
        say_failures("webhook of", found)
    else:
        say("no webhook is on" if table is None else f"the webhook of {table} is not on")


def show_webhooks(found: Iterable[Mapping[str, Any]]) -> None:
    """A line each."""
    rows = []
    for one in found:
        colour = {"failing": "red", "sending": "green"}.get(one["state"], "yellow")
        release = "" if one["release"] is None else str(one["release"])
        last = f"{one['rows']:,} by {one['way']}, {one['sent_at']}" if one["sent_at"] else ""
        tries = f", tried {one['tries']:,} times" if one["tries"] else ""
        position = batches_text(one["position"])
        state = (f"{one['state']}{tries}", colour)
        rows.append((one["table"], one["host"], state, release, position, last))
    show_rows(("webhook of", "host", "state", "release", "position", "rows posted last"), rows)
