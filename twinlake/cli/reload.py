"""`twinlake reload`: a project's files become active; `topic accept`: a topic that was made again."""

from __future__ import annotations

from typing import Annotated

import typer

from twinlake.cli.job_options import Asked, asking
from twinlake.cli.jobs import AS_JSON, KEY, follow, lake_client
from twinlake.cli.output import load_settings, print_json, say, tell
from twinlake.config.settings import Settings
from twinlake.server.job_models import AcceptParams, ReloadParams

WORDS = {
    "added": "is read now", "edited": "goes on with its new files", "removed": "is read no more",
}  # fmt: skip


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("reload")(reload_command)
    topic = typer.Typer(help="Topics and what ingest does with them.", no_args_is_help=True)
    topic.command("accept")(accept_command)
    app.add_typer(topic, name="topic")


@asking(ReloadParams, without=("check",))
def reload_command(*, asked: Asked, key: KEY = None, as_json: AS_JSON = False) -> None:
    settings, client = load_settings(), lake_client()
    if _is_locked(settings):
        follow(client, client.submit("reload", {**asked, "check": True})).succeeded()
        _make_topics(settings)
    found = follow(client, client.submit("reload", asked, key)).succeeded()
    if as_json:
        print_json(found)
        return
    for what, words in WORDS.items():
        for name in found[what]:
            say(f"topic {name} {words}")
    if unchanged := found["unchanged"]:
        say(f"unchanged: {', '.join(unchanged)}")
    for one in found["classified"]:
        say(one)
    if not found["classified"] and not any(found[what] for what in WORDS):
        tell("the files say nothing new")


def _is_locked(settings: Settings) -> bool:
    from twinlake.services.broker_security import is_locked

    return is_locked(settings)


def _make_topics(settings: Settings) -> None:
    """A locked broker lets the lake server read what it was given, and make nothing; the supervisor may."""
    from twinlake.services.supervise.control import context_of
    from twinlake.services.topics import prepare

    prepare(context_of(settings))


@asking(AcceptParams, arguments=("topic",))
def accept_command(
    *,
    asked: Asked,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    client = lake_client()
    accepted = client.follow(client.submit("accept", asked).id).succeeded()
    if as_json:
        print_json(accepted)
    else:
        say(f"topic {asked['topic']} is accepted as epoch {accepted['epoch']}")
        for partition, (first, to) in sorted(accepted["lost"].items()):
            say(f"lost before they were read: partition {partition} offsets {first} to {to - 1}")
