"""`twinlake gallery`: examples with topics, tables and sample records of their own."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from types import ModuleType
from typing import Annotated

import typer

from twinlake.base.errors import UsageError
from twinlake.base.files import replace_file
from twinlake.cli.numbers import whole
from twinlake.cli.output import Words, load_settings, say, show_rows, tell
from twinlake.cli.topics import reporter, span_ms, stopped_by_signals
from twinlake.config.settings import GALLERY, PROJECT
from twinlake.definitions.loader import defined
from twinlake.kinds.dependencies import ordered
from twinlake.kinds.kind import Kind
from twinlake.topics.contract import JSON
from twinlake.topics.topic import load_topic, topic_names

EXAMPLE = Annotated[str, typer.Argument(help="an example of `twinlake gallery list`")]


def register(app: typer.Typer) -> None:
    """Adds the commands of the gallery."""
    gallery = typer.Typer(help="Examples, each with topics and tables of its own.", no_args_is_help=True)
    gallery.command("list")(list_command)
    gallery.command("add")(add_command)
    gallery.command("produce")(produce_command)
    gallery.command("check")(check_command)
    app.add_typer(gallery, name="gallery")


def list_command() -> None:
    """Show every example: what it is about, its topics and tables, and whether this state has it."""
    added = load_settings().examples
    rows: list[tuple[Words, ...]] = []
    for example in names():
        about = (_examples()[example].__doc__ or "").splitlines()[0]
        topics = ", ".join(topic_names(GALLERY / example))
        rows.append((example, "yes" if example in added else "no", topics, ", ".join(tables(example)), about))
    show_rows(("example", "added", "topics", "tables", "about"), rows)


def add_command(example: EXAMPLE) -> None:
    """Let this state have the example: its topics are opened at the next start, its tables are planned."""
    settings = load_settings()
    _refuse_unknown(example)
    if example in settings.examples:
        tell(f"{example} has been added before")
        return
    here = topic_names(*settings.sources) + tuple(one.name for one in defined(settings.examples))
    if taken := {*topic_names(GALLERY / example), *tables(example)} & {*here}:
        raise UsageError(
            f"{example} cannot be added", f"there is {', '.join(sorted(taken))} already", "rename yours"
        )
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(settings.gallery_file, json.dumps([*settings.examples, example]) + "\n")
    say(f"{example} is added: topics {', '.join(topic_names(GALLERY / example))}; "
        f"tables {', '.join(tables(example))}")  # fmt: skip
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
    _refuse_unknown(example)
    if example not in settings.examples:
        raise UsageError(f"{example} is not added yet", "", f"run `twinlake gallery add {example}`")
    from twinlake.topics.gallery import sequence
    from twinlake.topics.kafka import Kafka
    from twinlake.topics.produce import produce
    from twinlake.topics.registry import Registry

    services, past_ms, run = settings.services(), span_ms(span), secrets.token_hex(6)
    registry = Registry(services.registry())
    for topic in topic_names(GALLERY / example):
        is_json = load_topic(topic, GALLERY / example).contract.format == JSON
        known = {} if is_json else registry.schemas(f"{topic}-value")
        if not (Kafka(services.kafka("producer")).topic(topic) if is_json else known):
            raise UsageError(
                f"topic {topic} is not open yet", f"{example} was added after the start",
                "run `twinlake reload`",
            )  # fmt: skip
        source = sequence(
            example, topic, seed=seed, run=run, schema_id=max(known, default=0), span_ms=past_ms
        )
        with stopped_by_signals() as stop, reporter(count) as report:
            sent = produce(
                source, access=services.kafka("producer"), topic=topic, count=count, rate=None,
                stop=stop, report=report,
            )  # fmt: skip
        say(f"{topic}: {sent.acknowledged:,} records acknowledged in {sent.seconds:.1f} s")


def check_command(example: EXAMPLE) -> None:
    """Recompute the example's tables from the broker's bytes by other code, and compare; exit code 1 differs.

    Wait until `twinlake status` shows no lag first.
    """
    settings = load_settings()
    _refuse_unknown(example)
    settings.services()
    from twinlake.lake import formats
    from twinlake.lake.catalog.release_log import live

    formats.refuse_other(settings.lake)
    release = live(settings.lake)
    if lacking := [name for name in tables(example) if release is None or name not in release.tables]:
        raise UsageError(
            f"{example} cannot be checked yet", f"the live release lacks {', '.join(lacking)}",
            "run `twinlake plan`, `twinlake build`, `twinlake promote`",
        )  # fmt: skip
    compared = {
        table.name: (table.view_keys, [
            name for name in table.timeless if name not in (*table.view_keys, *table.implied)
        ])
        for table in ordered(definitions(example))
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "tests.oracle.gallery", example, "--services", str(settings.services_file),
         "--tables", json.dumps(compared)],
        cwd=PROJECT,
    )  # fmt: skip
    raise typer.Exit(done.returncode)


def names() -> tuple[str, ...]:
    """Every example there is."""
    return tuple(_examples())


def definitions(example: str) -> tuple[Kind, ...]:
    """The tables of an example, as they are defined."""
    found: tuple[Kind, ...] = _examples()[example].TABLES
    return found


def tables(example: str) -> tuple[str, ...]:
    """Their names."""
    return tuple(table.name for table in definitions(example))


def _examples() -> dict[str, ModuleType]:
    from jobs.tables.gallery import EXAMPLES  # here: no other command needs them

    return EXAMPLES


def _refuse_unknown(example: str) -> None:
    if example not in names():
        raise UsageError(f"there is no example {example!r}", "", f"known: {', '.join(names())}")
