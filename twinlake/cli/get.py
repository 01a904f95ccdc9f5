"""`twinlake get`: rows of a table by its key, as a service looks them up."""

from __future__ import annotations

from typing import Annotated

import typer

from twinlake.cli.output import print_json
from twinlake.cli.query import show, sql_server, tell_freshness
from twinlake.reading.client import Until, look_up
from twinlake.reading.wire import key_of


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("get")(get_command)


def get_command(
    table: Annotated[str, typer.Argument(help="a table of the live release")],
    key: Annotated[
        list[str],
        typer.Argument(
            help="a key column, like region=north; as many of the key as you know, NULL without ="
        ),
    ],
    min_position: Annotated[
        str | None,
        typer.Option(help="wait until the table has passed it, like orders=120,payments=7"),
    ] = None,
    min_offsets: Annotated[
        str | None,
        typer.Option(help="wait until the table has these records, like orders/0=1234,orders/1=88"),
    ] = None,
    wait_seconds: Annotated[float, typer.Option(min=0, max=60, help="at most so long")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="print a list of row objects")] = False,
) -> None:
    """The rows of a table with this key, as its view has them now."""
    services, waiting = sql_server()
    until = Until(min_position=min_position, min_offsets=min_offsets, wait_seconds=wait_seconds)
    found = look_up(services, table, key_of(key), until, waiting)
    if as_json:
        print_json(found["rows"])
    else:
        show(found)
    tell_freshness(found)
