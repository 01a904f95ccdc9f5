"""`twinlake topic accept`: go on with a topic that was made again."""

from __future__ import annotations

from typing import Annotated

import typer

from twinlake.cli.job_options import Asked, asking
from twinlake.cli.output import load_settings, print_json, say
from twinlake.server.job_models import AcceptParams


def register(app: typer.Typer) -> None:
    """Adds the commands about topics."""
    topic = typer.Typer(help="Topics and what ingest does with them.", no_args_is_help=True)
    topic.command("accept")(accept_command)
    app.add_typer(topic, name="topic")


@asking(AcceptParams, arguments=("topic",))
def accept_command(
    *,
    asked: Asked,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    from twinlake.server.client import LakeClient

    client = LakeClient.of(load_settings().services())
    accepted = client.follow(client.submit("accept", asked).id).succeeded()
    if as_json:
        print_json(accepted)
    else:
        say(f"topic {asked['topic']} is accepted as epoch {accepted['epoch']}")
        for partition, (first, to) in sorted(accepted["lost"].items()):
            say(f"lost before they were read: partition {partition} offsets {first} to {to - 1}")
