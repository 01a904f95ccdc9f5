"""`twinlake produce`: sample records, as the project's `records.py` draws them."""

from __future__ import annotations

import math
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from twinlake.base.errors import UsageError
from twinlake.base.times import parse_duration
from twinlake.cli.options import rate, whole
from twinlake.cli.output import load_settings, print_json, say, tell
from twinlake.cli.progress import bar_of
from twinlake.config.project import Project
from twinlake.config.settings import Settings
from twinlake.topics.contract import JSON
from twinlake.topics.records import Wanted, sources_of
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from twinlake.topics.produce import Sent

LOG_SECONDS = 5.0


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("produce")(produce_command)


def produce_command(
    topic: Annotated[
        str | None, typer.Argument(help="the topic to fill; unless given, the only one that has samples")
    ] = None,
    count: Annotated[
        int,
        typer.Option(parser=whole(0), metavar="NUMBER", help="records to send; 0: until stopped (Ctrl-C)"),
    ] = 0,
    rate: Annotated[
        float, typer.Option(parser=rate, metavar="NUMBER", help="records a second; 0: as fast as possible")
    ] = 0.0,
    seed: Annotated[
        int, typer.Option(parser=whole(0), metavar="NUMBER", help="the same seed draws the same records")
    ] = 1,
    run: Annotated[str, typer.Option(help="part of the event ids; random unless given")] = "",
    faults: Annotated[
        bool, typer.Option("--faults", help="mix in duplicates, invalid and late ones")
    ] = False,
    span: Annotated[str, typer.Option(help='spread event times over the past, like "2h" or "2 hours"')] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print a summary as JSON")] = False,
) -> None:
    """Send sample records of a topic, as the project's records.py draws them."""
    if not count and not rate:
        raise UsageError(
            what="neither --count nor --rate is given",
            why="full speed without an end would fill the disk",
            remedy="add --count 100000, or --rate 500 to produce until stopped",
        )
    if not math.isfinite(rate):
        raise UsageError(f"--rate {rate} is not a rate", "", "leave it out for full speed, with --count")
    settings = load_settings()
    past_ms, topic = span_ms(span), topic or _only_sampled(settings.project)
    run = run or secrets.token_hex(6)
    wanted = partial(Wanted, seed=seed, run=run, span_ms=past_ms, rate=rate, faults=faults)
    sent = send(settings, topic, wanted, count, rate)
    summary = {"topic": topic, "seed": seed, "run": run, **asdict(sent)}
    summary["seconds"] = round(sent.seconds, 3)
    summary["records_per_second"] = round(sent.per_second, 1)
    if as_json:
        print_json(summary)
    else:
        say(f"{sent.acknowledged:,} records acknowledged in {sent.seconds:.1f} s ({sent.per_second:,.0f}/s)")
        tell("next: twinlake status says when they are in the tables")


def span_ms(text: str) -> int:
    """A duration, nothing for none; `2h`, `90m`, `30s` and `3d` are short for the words."""
    if not text:
        return 0
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
    if text[:-1].isdigit() and text[-1] in units:
        text = f"{text[:-1]} {units[text[-1]]}"
    return int(parse_duration(text).total_seconds() * 1000)


def send(settings: Settings, name: str, wanted: Callable[..., Wanted], count: int, rate: float = 0.0) -> Sent:
    """Sends sample records of a topic. UsageError for one without samples, or that is not open."""
    from twinlake.topics.kafka import Kafka  # here: half a second that no other command needs
    from twinlake.topics.produce import produce
    from twinlake.topics.registry import Registry

    drawn = {
        topic: (project, draws)
        for project in settings.sources
        for topic, draws in sources_of(project).items()
    }
    if name not in drawn:
        known = ", ".join(drawn) or "none; write SOURCES in the project's records.py"
        raise UsageError(f"there are no samples for topic {name!r}", f"known: {known}", "name another topic")
    project, draws = drawn[name]
    topic = load_topic(name, project)
    services = settings.services()
    is_json = topic.contract.format == JSON
    schemas = {} if is_json else Registry(services.registry()).schemas(f"{name}-value")
    if not (Kafka(services.kafka("producer")).topic(name) if is_json else schemas):
        raise UsageError(
            f"topic {name} is not open yet",
            "it was added after the start",
            "run `twinlake reload`, or `twinlake up` where nothing runs",
        )
    source = draws(wanted(topic=topic, schemas=schemas))
    with stopped_by_signals() as stop, reporter(count) as report:
        return produce(
            source, login=services.kafka("producer"), topic=name, count=count or None, rate=rate or None,
            stop=stop, report=report,
        )  # fmt: skip


def _only_sampled(project: Project) -> str:
    own = sorted(sources_of(project))
    if len(own) == 1:
        return own[0]
    known = f"there are samples for {', '.join(own)}" if own else "this project's records.py draws none"
    raise UsageError("no topic is named", known, "name one of these")


@contextmanager
def stopped_by_signals() -> Iterator[Event]:
    """An event that Ctrl-C and SIGTERM set, so that what was sent is flushed and counted."""
    stop = Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def reporter(count: int) -> Iterator[Callable[[Sent], None]]:
    """A progress bar on a terminal, a line every few seconds elsewhere."""
    if not sys.stderr.isatty():
        next_line = time.monotonic() + LOG_SECONDS

        def line(sent: Sent) -> None:
            nonlocal next_line
            if time.monotonic() >= next_line:
                next_line = time.monotonic() + LOG_SECONDS
                tell(f"{sent.sent:,} records sent, {sent.per_second:,.0f}/s")

        yield line
        return
    columns = (
        TextColumn("producing"),
        BarColumn(),
        TextColumn("{task.completed:,} records, {task.fields[speed]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    with bar_of(*columns, transient=False) as bar:
        task = bar.add_task("producing", total=count or None, speed=0.0)
        yield lambda sent: bar.update(task, completed=sent.sent, speed=sent.per_second)
