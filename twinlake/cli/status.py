"""`twinlake status`: what services and lake server say of themselves, and what is wrong."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from twinlake.base.errors import TwinlakeError, UnreachableError, UsageError
from twinlake.cli.care import backup_told, care, show_backup
from twinlake.cli.changelog import show_changelogs
from twinlake.cli.options import refuse_beside
from twinlake.cli.output import (
    Words,
    is_terminal,
    load_settings,
    print_json,
    say,
    say_error,
    show_error,
    show_rows,
    tell,
)
from twinlake.cli.pause import show_paused
from twinlake.cli.publish import show_published
from twinlake.cli.watch import ENDED
from twinlake.cli.webhook import show_webhooks
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.lake_status import NOTHING, state_of, tables_of
from twinlake.services.problems import Problem, problems
from twinlake.services.supervise import control, record
from twinlake.services.upgrade import state as upgrade
from twinlake.topics.verdict import LATE, VERDICTS

COUNTED = (*VERDICTS, LATE)
AGAIN_S = 2.0


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("status")(status)


def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    disk: Annotated[
        bool,
        typer.Option("--disk", help="Show instead what is on the disk, by topic, table and version, and what "
                     "could be let go; nothing need run."),
    ] = False,
    short: Annotated[bool, typer.Option("--short", "-s", help="Show a line for each of them.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again every two seconds, until ^C.")
    ] = False,
) -> None:  # fmt: skip
    """Show every service, topic and table version, the live release and its tables' newest certificates.

    Exit code 3 when a service does not answer, 1 when a topic has an error, its configuration loses records,
    a clock has jumped, a version is stalled, speed and batch of a live table differ, a changelog fails, the
    SQL server cannot follow the lake or hears nothing of the lake server, the last backup failed or the
    newest is too old, the users file is damaged, a rotation of secrets or an upgrade was not finished, a disk
    is full, or the supervisor has ended.
    """
    if disk:
        refuse_beside("--disk", {"--watch": watch, "--short": short})
    if as_json:
        refuse_beside("--json", {"--short": short})
    settings = load_settings()
    _ = settings.values  # what is wrong there is reported once, not by every service that reads it
    if disk:
        from twinlake.cli.disk import show_disk

        show_disk(settings, as_json)
        return
    if watch:
        _watch(settings, short, as_json)
    parts, lake = asked(settings)
    found = _wrong(settings, parts, lake)
    if as_json:
        print_json(as_told(settings, parts, lake))
    else:
        _show_all(settings, parts, lake, found, short)
    if not _is_whole(parts):
        raise typer.Exit(3)
    if found:
        raise typer.Exit(1)


def _wrong(settings: Settings, parts: list[dict[str, Any]], lake: dict[str, Any]) -> list[Problem]:
    found = problems(parts, lake, record.supervisor_error(settings))
    return found + care(settings, parts, lake, found)


def _watch(settings: Settings, short: bool, as_json: bool) -> NoReturn:
    if as_json or not is_terminal():
        why = "--json is asked for" if as_json else "stdout is none"
        raise UsageError("--watch needs a terminal", why, "leave it out, and ask again and again")
    terminal = Console()
    try:
        while True:
            try:
                parts, lake = asked(settings)
                found = _wrong(settings, parts, lake)
                terminal.clear()
                _show_all(settings, parts, lake, found, short)
            except UnreachableError as away:
                terminal.clear()
                show_error(away)
            time.sleep(AGAIN_S)
    except KeyboardInterrupt:
        raise typer.Exit(ENDED) from None


def _show_all(
    settings: Settings, parts: list[dict[str, Any]], lake: dict[str, Any], found: list[Problem], short: bool
) -> None:
    if short:
        _show_short(parts, lake, found)
        return
    _show(parts, lake)
    show_backup(settings, lake)
    _show_problems(found)


def _show_short(parts: list[dict[str, Any]], lake: dict[str, Any], found: list[Problem]) -> None:
    """What fits 80 columns: whether all is well, and a line for each topic and live table."""
    away = [part["part"] for part in parts if not part["answers"]]
    answer = f"services: {len(parts) - len(away)} of {len(parts)} answer"
    say(answer, (f"; not {', '.join(away)}", "red") if away else "")
    if release := lake["release"]:
        say(f"release {release['number']} ({release['kind']} by {release['approved_by']})")
    for topic in lake["topics"]:
        lag = topic["lag_records"]
        behind = "its lag is not known" if lag is None else f"{lag:,} records behind"
        say(f"topic {topic['name']}: {topic['state']}, {behind}")
    for one in tables_of(lake):
        if one["live"]:
            seconds = one["behind_seconds"]
            behind = "" if seconds is None else f", {seconds:,.1f} s behind"
            equal = {True: ", certified equal", False: ", speed and batch DIFFER", None: ""}[one["equal"]]
            say(f"table {one['table']}: {one['state']}{behind}{equal}")
    if not (away or found):
        say(("all is well", "green"))
    for problem in found:
        say((f"{problem.title}: ", "bold"), str(problem.error.get("what", "")))
    if found:
        tell("`twinlake status` says why, and what to do")


def asked(settings: Settings) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What services and lake server say of themselves; UnreachableError where nothing runs."""
    parts = control.describe(settings)
    if not parts:
        if hindered := upgrade.error_seen(folders_of(settings)) or _refused_start(settings):
            raise UnreachableError(f"Twinlake is not running: {hindered.what}", hindered.why, hindered.remedy)
        raise UnreachableError(
            "Twinlake is not running", f"nothing runs for {settings.home}", _how_to_start(settings)
        )
    return parts, _lake_status(settings, parts)


def _refused_start(settings: Settings) -> TwinlakeError | None:
    try:
        upgrade.refuse_start(folders_of(settings))
    except UsageError as error:
        return error
    return None


def _how_to_start(settings: Settings) -> str:
    """Of an older lake by the way that keeps it as it is."""
    from twinlake.lake import formats

    known = formats.known(settings.lake) if isinstance(settings.lake, Path) else None
    if known is not None and known.format < len(formats.STEPS):
        return (
            f"the lake has format {known.format}, and this version {len(formats.STEPS)}: `twinlake upgrade` "
            "takes it on and keeps that of before; `twinlake up` takes it on and keeps nothing of it"
        )
    return "run `twinlake up`"


def as_told(settings: Settings, parts: list[dict[str, Any]], lake: dict[str, Any]) -> dict[str, Any]:
    """The same for programs."""
    return {
        "home": str(settings.home), "supervisor": record.supervisor_alive(settings), "parts": parts, **lake,
        "ready": _is_whole(parts), "backup": backup_told(settings, lake),
    }  # fmt: skip


def _is_whole(parts: list[dict[str, Any]]) -> bool:
    return bool(parts) and all(part["answers"] for part in parts)


def _lake_status(settings: Settings, parts: list[dict[str, Any]]) -> dict[str, Any]:
    nothing = dict(NOTHING)
    if not any(part["part"] == "lake" and part["answers"] for part in parts):
        return nothing
    from twinlake.server.client import LakeClient

    try:
        return {**nothing, **LakeClient.of(settings.services()).status()}
    except TwinlakeError as error:
        return {**nothing, "error": error.to_json()}


def _show(parts: list[dict[str, Any]], lake: dict[str, Any]) -> None:
    _show_parts(parts)
    if lake["topics"]:
        _show_topics(lake["topics"])
    if lake["versions"]:
        _show_versions(lake["versions"])
    if release := lake["release"]:
        tables = ", ".join(f"{name} {version}" for name, version in release["tables"].items())
        say(f"release {release['number']} ({release['kind']}, {release['created_at']}, by "
            f"{release['approved_by']}): {tables}")  # fmt: skip
    for certificate in lake["certificates"]:
        equal = ("equal", "green") if certificate["equal"] else ("different", "red")
        rows, at = f"{certificate['rows_compared']:,} rows compared", certificate["created_at"]
        name = f"{certificate['table']} {certificate['version']}"
        say(f"certificate: {name} ", equal, f" over {certificate['covers']}; {rows}, {at}")
        if proof := certificate.get("proof"):
            say(f"  {proof}")
    for one in lake.get("topic_certificates", ()):
        say(f"certificate: topic {one['topic']}: {one['words']}, {one['created_at']}")
    if lake["changelogs"]:
        say("")
        show_changelogs(lake["changelogs"])
    if published := lake.get("published"):
        say("")
        show_published(published)
    if webhooks := lake.get("webhooks"):
        say("")
        show_webhooks(webhooks)
    if lake["paused"]:
        say("")
        show_paused(lake["paused"])
    if spark := lake["spark"]:
        say(f"spark: {spark['master']}, {spark['executors']} executors with {spark['cores']} cores")


def _show_problems(found: list[Problem]) -> None:
    for one in found:
        say_error(one.title, one.error)


def _show_parts(parts: list[dict[str, Any]]) -> None:
    rows: list[tuple[Words, ...]] = []
    for part in parts:
        state = part["state"] if part["answers"] or part["state"] != "ready" else "does not answer"
        answer = (part["error"] or {}).get("what") or part["answer"]
        colour = "green" if part["answers"] else "red"
        whose = "external" if part["given"] else "embedded"
        words = "; ".join(filter(None, [answer, part["note"]]))
        pid, restarts = str(part["pid"] or ""), str(part["restarts"])
        rows.append((part["part"], whose, (state, colour), pid, restarts, words))
    show_rows(("service", "is", "state", "pid", "restarts", "answer"), rows)
    say("")


def _show_topics(topics: list[dict[str, Any]]) -> None:
    rows = []
    for topic in topics:
        ends = " ".join(f"{partition}:{offset}" for partition, offset in sorted(topic["ends"].items()))
        counts = [topic["counts"].get(verdict, 0) for verdict in COUNTED]
        lag = topic["lag_records"]
        place = (topic["batch"], ends, topic["records"], lag)
        cells = (topic["name"], topic["state"], *place, *counts, topic["watermark"])
        rows.append([_cell(cell) for cell in cells])
    show_rows(("topic", "state", "batch", "log end", "records", "lag", *COUNTED, "watermark"), rows)
    say("")
    for topic in topics:
        for one in topic.get("unreadable", ()):
            said = f"{topic['name']}: {one['records']:,} records of schema {one['schema']} are in quarantine"
            say((said, "yellow"), f" ({one['reason']})")
            say(f"  {one['why']}")
            say(f"  {one['remedy']}")
            say("")
        if gone := topic.get("deleted"):
            deleted = f"retention has deleted {gone['rows']:,} records, up to {gone['until']}"
            say(f"{topic['name']}: {deleted}; the rows of tables stay")
        for one in topic.get("lost", ()):
            lost = f"epoch {one['epoch']} partition {one['partition']} offsets {one['from']} to {one['to']}"
            say(f"{topic['name']}: Kafka had lost {lost} before they were read; that was accepted")


def _show_versions(versions: list[dict[str, Any]]) -> None:
    rows = []
    for one in versions:
        position = ", ".join(f"{topic}:{batch}" for topic, batch in one["position"].items())
        seconds = None if one["lag_seconds"] is None else round(one["lag_seconds"], 1)
        lag = (one["lag_records"], seconds)
        cells = (one["table"], one["version"], position, *lag, one["step"], one["segment"], state_of(one))
        rows.append([_cell(cell) for cell in cells])
    show_rows(("table", "version", "position", "lag", "seconds", "step", "segment", "state"), rows)
    say("")


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
