"""`twinlake pause` and `twinlake resume`: a topic, a table or a changelog stands still, and goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.base.job import batches_text
from twinlake.cli.job_options import Asked, asking
from twinlake.cli.jobs import AS_JSON, follow, lake_client, named
from twinlake.cli.output import print_json, say, tell
from twinlake.lake.catalog.paused import what
from twinlake.server.job_models import PauseParams, ResumeParams

NAME = Annotated[str, typer.Argument(help="{about}")]
TOPIC = Annotated[bool, typer.Option("--topic", help="the topic of that name is meant")]
TABLE = Annotated[bool, typer.Option("--table", help="the table of that name is meant")]
CHANGELOG = Annotated[bool, typer.Option("--changelog", help="the changelog of that table is meant")]
BY = Annotated[str | None, typer.Option(help="{about}; your login unless given")]


def register(app: typer.Typer) -> None:
    """Adds both."""
    app.command("pause")(pause_command)
    app.command("resume")(resume_command)


@asking(PauseParams, without=("kind",))
def pause_command(
    *,
    name: NAME,
    topic: TOPIC = False,
    table: TABLE = False,
    changelog: CHANGELOG = False,
    asked: Asked,
    by: BY = None,
    as_json: AS_JSON = False,
) -> None:
    found = _done("pause", {**asked, **_asked(name, topic, table, changelog, by)})
    if as_json:
        print_json(found)
        return
    paused = found["paused"]
    say(f"{paused['what']} {'is' if found['changed'] else 'was already'} {paused['words']}")
    if not found["changed"] and asked.get("reason") not in (None, paused["reason"]):
        tell("its reason stays as it is: `twinlake resume`, then pause it again for another")
    for version, position in (found["position"] or {}).items():
        say(f"  version {version} stands at {batches_text(position)}")


@asking(ResumeParams, without=("kind",))
def resume_command(
    *,
    name: NAME,
    topic: TOPIC = False,
    table: TABLE = False,
    changelog: CHANGELOG = False,
    asked: Asked,
    by: BY = None,
    as_json: AS_JSON = False,
) -> None:
    found = _done("resume", {**asked, **_asked(name, topic, table, changelog, by)})
    if as_json:
        print_json(found)
    else:
        named = what(found["kind"], name)
        say(f"{named} goes on" if found["changed"] else f"{named} is not paused")


def show_paused(found: Iterable[Mapping[str, Any]]) -> None:
    """A line each."""
    for one in found:
        say((f"{one['what']} is {one['words']}", "yellow"))


def _asked(name: str, topic: bool, table: bool, changelog: bool, by: str | None) -> dict[str, Any]:
    kinds = {"topic": topic, "table": table, "changelog": changelog}
    meant = [kind for kind, is_meant in kinds.items() if is_meant]
    if len(meant) > 1:
        flags = " and ".join(f"--{kind}" for kind in meant)
        raise UsageError(f"{flags} exclude each other", "one thing is paused at a time", "give one of them")
    return {"name": name, "by": named(by, "--by"), **({"kind": meant[0]} if meant else {})}


def _done(kind: str, asked: dict[str, Any]) -> dict[str, Any]:
    client = lake_client()
    return follow(client, client.submit(kind, asked)).succeeded()
