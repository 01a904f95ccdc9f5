"""`twinlake gallery`: examples with topics, tables and sample records of their own, beside a project's."""

from __future__ import annotations

import json
import secrets
from functools import partial
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.base.files import replace_file
from twinlake.cli.jobs import AS_JSON
from twinlake.cli.options import whole
from twinlake.cli.output import load_settings, print_json, say, show_rows, tell
from twinlake.cli.produce import send, span_ms
from twinlake.config.project import Project
from twinlake.config.settings import Settings
from twinlake.definitions.loader import load
from twinlake.topics.records import Wanted
from twinlake.topics.topic import topic_names

EXAMPLE = Annotated[str, typer.Argument(help="an example of `twinlake gallery list`")]


def register(app: typer.Typer) -> None:
    """Adds the commands of the gallery."""
    gallery = typer.Typer(help="Examples, each with topics and tables of its own.", no_args_is_help=True)
    gallery.command("list")(list_command)
    gallery.command("add")(add_command)
    gallery.command("produce")(produce_command)
    app.add_typer(gallery, name="gallery")


def list_command(as_json: AS_JSON = False) -> None:
    """Show every example: what it is about, its topics and tables, and whether this data directory has it."""
    settings = load_settings()
    added = settings.examples
    found: list[dict[str, Any]] = []
    for name in settings.project.example_names():
        example = _example(settings, name)
        found.append(
            {
                "example": name, "added": name in added, "topics": topic_names(example),
                "tables": tables(example), "about": about(example),
            }
        )  # fmt: skip
    if as_json:
        print_json(found)
        return
    rows = [
        (one["example"], "yes" if one["added"] else "no", ", ".join(one["topics"]), ", ".join(one["tables"]),
         one["about"])
        for one in found
    ]  # fmt: skip
    show_rows(("example", "added", "topics", "tables", "about"), rows)


def add_command(example: EXAMPLE) -> None:
    """Let this data directory have the example: its topics are opened at the next start, its tables are
    planned."""
    settings = load_settings()
    added = _example(settings, example)
    if example in settings.examples:
        tell(f"{example} has been added before")
        return
    topics, shown = topic_names(added), tables(added)
    here = topic_names(*settings.sources) + tuple(one.name for one in load(*settings.sources).sound())
    if taken := {*topics, *shown} & {*here}:
        raise UsageError(
            f"{example} cannot be added", f"there is {', '.join(sorted(taken))} already", "rename yours"
        )
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(settings.gallery_file, json.dumps([*settings.examples, example]) + "\n")
    say(f"{example} is added: topics {', '.join(topics)}; tables {', '.join(shown)}")
    tell("next: `twinlake reload` (or `twinlake up`, where nothing runs), then")
    tell(f"`twinlake gallery produce {example}`, `twinlake plan`, `twinlake build`, `twinlake promote`")


def produce_command(
    example: EXAMPLE,
    count: Annotated[
        int, typer.Option(parser=whole(1, 10_000_000), metavar="NUMBER", help="records of each topic")
    ] = 20_000,
    seed: Annotated[
        int, typer.Option(parser=whole(), metavar="NUMBER", help="the same seed draws the same records")
    ] = 0,
    span: Annotated[str, typer.Option(help='spread event times over the past, like "2h"')] = "2h",
) -> None:
    """Send records of the example: with ties, late ones, and some that are sent twice."""
    settings = load_settings()
    project = _example(settings, example)
    if example not in settings.examples:
        raise UsageError(f"{example} is not added yet", "", f"run `twinlake gallery add {example}`")
    wanted = partial(Wanted, seed=seed, run=secrets.token_hex(6), span_ms=span_ms(span))
    for topic in topic_names(project):
        sent = send(settings, topic, wanted, count)
        say(f"{topic}: {sent.acknowledged:,} records acknowledged in {sent.seconds:.1f} s")


def tables(example: Project) -> tuple[str, ...]:
    """The names of its tables."""
    return tuple(table.name for table in load(example).sound())


def _example(settings: Settings, name: str) -> Project:
    known = settings.project.example_names()
    if name not in known:
        raise UsageError(f"there is no example {name!r}", "", f"known: {', '.join(known) or 'none'}")
    return Project.load(settings.project.examples / name)


def about(example: Project) -> str:
    """The first sentence of its README."""
    file = example.root / "README.md"
    lines = file.read_text().splitlines() if file.exists() else []
    return next((line for line in lines if line and not line.startswith("#")), "")
