"""`twinlake produce` and `twinlake topic accept`."""

from __future__ import annotations

import math
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.times import parse_duration
from twinlake.cli.job_options import Asked, asking
from twinlake.cli.numbers import rate, whole
from twinlake.cli.output import console, load_settings, print_json, say, tell
from twinlake.server.job_models import AcceptParams

if TYPE_CHECKING:
    from twinlake.config.login import RegistryLogin
    from twinlake.topics.produce import Sent

SAMPLED = "orders"
LOG_SECONDS = 5.0


def register(app: typer.Typer) -> None:
    """Adds the commands about topics."""
    topic = typer.Typer(help="Topics and what ingest does with them.", no_args_is_help=True)
    topic.command("accept")(accept_command)
    app.add_typer(topic, name="topic")
    app.command("produce")(produce_command)


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


def produce_command(
    topic: Annotated[str, typer.Argument(help="the topic to fill; samples exist for orders")] = SAMPLED,
    count: Annotated[
        int,
        typer.Option(parser=whole(0), metavar="NUMBER", help="records to send; 0: until stopped (Ctrl-C)"),
    ] = 0,
    rate: Annotated[
        float, typer.Option(parser=rate, metavar="NUMBER", help="records a second; 0: as fast as possible")
    ] = 0.0,
    seed: Annotated[
        int, typer.Option(parser=whole(0), metavar="NUMBER", help="the same seed draws the same orders")
    ] = 1,
    run: Annotated[str, typer.Option(help="part of the event ids; random unless given")] = "",
    faults: Annotated[
        bool, typer.Option("--faults", help="mix in duplicates, invalid and late ones")
    ] = False,
    span: Annotated[str, typer.Option(help='spread event times over the past, like "2h" or "2 hours"')] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print a summary as JSON")] = False,
) -> None:
    """Send realistic orders: 100,000 customers with Zipf weights, 20 regions, keyed by customer."""
    if topic != SAMPLED:
        raise UsageError(
            what=f"there are no samples for topic {topic!r}",
            why="the producer draws orders only",
            remedy=f"use `twinlake produce {SAMPLED}`",
        )
    if not count and not rate:
        raise UsageError(
            what="neither --count nor --rate is given",
            why="full speed without an end would fill the disk",
            remedy="add --count 100000, or --rate 500 to produce until stopped",
        )
    if not math.isfinite(rate):
        raise UsageError(f"--rate {rate} is not a rate", "", "leave it out for full speed, with --count")
    from twinlake.topics.produce import produce  # here: half a second that no other command needs
    from twinlake.topics.sample_orders import REMEMBERED, FaultShares, Sample

    past_ms = span_ms(span)
    services = load_settings().services()
    run = run or secrets.token_hex(6)
    source = Sample(
        seed=seed,
        run=run,
        schema_id=_schema_id(services.registry(), topic),
        span_ms=past_ms,
        faults=FaultShares() if faults else None,
        remembered=min(REMEMBERED, int(rate * 1800) + 1) if rate else REMEMBERED,
    )
    with stopped_by_signals() as stop, reporter(count) as report:
        sent = produce(
            source,
            access=services.kafka("producer"),
            topic=topic,
            count=count or None,
            rate=rate or None,
            stop=stop,
            report=report,
        )
    summary = {"topic": topic, "seed": seed, "run": run, **asdict(sent)}
    summary["seconds"] = round(sent.seconds, 3)
    summary["records_per_second"] = round(sent.per_second, 1)
    if as_json:
        print_json(summary)
    else:
        say(f"{sent.acknowledged:,} records acknowledged in {sent.seconds:.1f} s ({sent.per_second:,.0f}/s)")


def span_ms(text: str) -> int:
    """A duration, nothing for none; `2h`, `90m`, `30s` and `3d` are short for the words."""
    if not text:
        return 0
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
    if text[:-1].isdigit() and text[-1] in units:
        text = f"{text[:-1]} {units[text[-1]]}"
    return int(parse_duration(text).total_seconds() * 1000)


def _schema_id(access: RegistryLogin, topic: str) -> int:
    """The id under which the schema that the samples are written in is registered."""
    from twinlake.topics.registry import Registry
    from twinlake.topics.sample_orders import FIELDS

    for schema_id, schema in Registry(access).schemas(f"{topic}-value").items():
        if tuple(one["name"] for one in schema["fields"]) == FIELDS:
            return schema_id
    raise UnreachableError(
        what=f"the registry knows no schema of {topic}-value with the fields of the samples",
        why=f"none of its versions has exactly {', '.join(FIELDS)}",
        remedy="run `twinlake up`, which registers schemas/orders.v1.avsc",
    )


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
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("producing", total=count or None, speed=0.0)
        yield lambda sent: bar.update(task, completed=sent.sent, speed=sent.per_second)
