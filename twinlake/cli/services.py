"""The commands around the local services: up, down, status, logs, reset."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from twinlake.base.errors import TwinlakeError, UnreachableError, UsageError, visible
from twinlake.cli.care import backup_told, care, show_backup
from twinlake.cli.changelog import show_changelogs
from twinlake.cli.numbers import whole
from twinlake.cli.output import Words, console, error_lines, load_settings, print_json, say, show_rows, tell
from twinlake.cli.pause import show_paused
from twinlake.cli.publish import show_published
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.lake_status import NOTHING, state_of
from twinlake.services.problems import Problem, problems
from twinlake.services.supervise import control, record
from twinlake.services.supervise.record import is_home, remove_state, tail
from twinlake.services.upgrade import state as upgrade
from twinlake.topics.verdict import LATE, VERDICTS

COUNTED = (*VERDICTS, LATE)
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for command in (up, down, status, logs, reset):
        app.command()(command)


def up(
    only: Annotated[str, typer.Option(help="Services to start, by comma; what they need comes along.")] = "",
    without: Annotated[str, typer.Option(help="Services to leave out, by comma.")] = "",
) -> None:
    """Start the services, wait until each really answers, and make the first release where there is none."""
    settings = load_settings()
    from twinlake.cli.doctor import check_given
    from twinlake.cli.first_release import ensure_release
    from twinlake.setup.ensure import ensure_jars
    from twinlake.spark.cluster import check_master

    settings.refuse_incomplete()
    refuse = partial(upgrade.refuse_start, folders_of(settings))
    refuse()
    ensure_jars(settings, os.environ, tell)
    given = settings.values.given
    parts = control.choose(names_in(only), names_in(without), given)
    missing = {part.service for part in parts} & {"lake", "sql"}  # what the first release takes
    needs_release = "lake" in missing
    with console.status("asking what is given ..."):
        if needs_release:
            check_master(settings.values)
        check_given(settings, [name for name in (*given, "lake") if name in {part.service for part in parts}])
    if needs_release and not _lake_answers(settings):  # one that runs goes on with the files that it has
        from twinlake.cli.check import refuse_stranding

        refuse_stranding(settings)
    with console.status("starting ...") as waiting:
        for ready in control.bring_up(settings, parts, os.environ, tell, refuse=refuse):
            took = (f"  {ready.seconds:.1f} s", "dim")
            whose = "external" if ready.given else "embedded"
            say(("ok", "green"), f" {ready.service:<9} {whose:<9} {ready.answer}", took)
            missing.discard(ready.service)
            if needs_release and not missing:
                needs_release = False
                if made := ensure_release(settings, waiting.update):
                    say(("ok", "green"), f" {'release':<9} {'':<9} {made}")
    services = settings.services()
    started = {part.service for part in parts if not part.given}
    logins = [
        ("airflow", services.airflow_user, "airflow"), ("sql", services.sql_user, "JDBC and reports"),
        ("lake", services.metrics_user, services.lake_metrics_url),
        ("sql", services.metrics_user, services.sql_metrics_url),
        ("console", services.metrics_user, services.console_metrics_url),
        ("console", services.console_user, "the console"),
    ]  # fmt: skip
    for service, user, endpoint in logins:
        if service in started and endpoint:
            say(f"   {'login':<9} {user} for {endpoint}; its password is in {settings.services_file}")


def down() -> None:
    """End exactly what was started."""
    settings = load_settings()
    if not folders_of(settings).run.exists():
        tell("nothing was started")
        return
    ended: list[str] = []

    def note(name: str) -> None:
        ended.append(name)
        tell(f"ended {name}")

    with console.status("ending ..."):
        control.bring_down(settings, note)
    if not ended:
        tell("nothing was running")


def status(
    as_json: Json = False,
    disk: Annotated[
        bool,
        typer.Option("--disk", help="Show instead what is on the disk, by topic, table and version, and what "
                     "could be let go; nothing need run."),
    ] = False,
) -> None:  # fmt: skip
    """Show every part, topic and table version, the live release and its tables' newest certificates.

    Exit code 3 when a part does not answer, 1 when a topic has an error, its configuration loses records, a
    clock has jumped, a version is stalled, speed and batch of a live table differ, a changelog fails, the SQL
    server cannot follow the lake or hears nothing of the lake server, the last backup failed or the newest is
    too old, the users file is damaged, a rotation of secrets or an upgrade was not finished, a disk is full,
    or the supervisor has ended.
    """
    settings = load_settings()
    _ = settings.values  # what is wrong there is reported once, not by every service that reads it
    if disk:
        from twinlake.cli.disk import show_disk

        show_disk(settings, as_json)
        return
    parts, lake = asked(settings)
    found = problems(parts, lake, record.supervisor_error(settings))
    found += care(settings, parts, lake, found)
    whole = _is_whole(parts)
    if as_json:
        print_json(as_told(settings, parts, lake))
    else:
        _show(parts, lake)
        show_backup(settings, lake)
        _show_problems(found)
    if not whole:
        raise typer.Exit(3)
    if found:
        raise typer.Exit(1)


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
        "home": str(settings.home), "ready": _is_whole(parts),
        "supervisor": record.supervisor_alive(settings), "parts": parts, **lake,
        "backup": backup_told(settings, lake),
    }  # fmt: skip


def _is_whole(parts: list[dict[str, Any]]) -> bool:
    return bool(parts) and all(part["answers"] for part in parts)


def logs(
    part: Annotated[
        str, typer.Argument(help="A service or process: broker, lake, airflow, airflow-scheduler, ...")
    ],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on showing what comes.")] = False,
    lines: Annotated[
        int,
        typer.Option("-n", "--lines", parser=whole(), metavar="NUMBER", help="How many lines of the past."),
    ] = 50,
) -> None:
    """Show the log of a part."""
    files = control.log_files(load_settings(), part)
    shown_to = {file: file.stat().st_size if file.exists() else 0 for file in files}
    written = [file for file in files if shown_to[file]]
    if not written:
        tell(f"{part} has not written anything yet")
    for file in written:
        if len(files) > 1:
            tell(f"==> {file.stem} <==")
        for line in tail(file, lines):
            print(_readable(line))
    if follow:
        _follow(shown_to)


def reset(yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """End the services and remove the lake, the topics and everything else in $TWINLAKE_HOME."""
    settings = load_settings()
    if not settings.home.exists():
        tell("there is no state to remove")
        return
    if not is_home(folders_of(settings)):
        raise UsageError(
            f"{settings.home} is not a state of Twinlake's", "it was never started there",
            "name the right folder with --home",
        )  # fmt: skip
    is_elsewhere = settings.lake != settings.home / "lake"
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("reset asks first", "there is no terminal to answer on", "add --yes")
        typer.confirm(f"Remove all records, tables and releases in {settings.home}?", abort=True)
    down()
    remove_state(folders_of(settings))
    tell(f"removed the state in {settings.home}")
    if is_elsewhere:
        tell(f"the lake in {settings.lake} is left as it is: others may read it; delete it before the next "
             "`twinlake up`, or topics that are recreated stop until `twinlake topic accept`")  # fmt: skip


def _lake_answers(settings: Settings) -> bool:
    return any(part["part"] == "lake" and part["answers"] for part in control.describe(settings))


def names_in(text: str) -> list[str]:
    """What an option has that takes names by comma."""
    return [name.strip() for name in text.split(",") if name.strip()]


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
    if lake["paused"]:
        say("")
        show_paused(lake["paused"])
    if spark := lake["spark"]:
        say(f"spark: {spark['master']}, {spark['executors']} executors with {spark['cores']} cores")


def _show_problems(found: list[Problem]) -> None:
    for one in found:
        say("")
        what, *more = error_lines(one.error)
        say(f"{one.title}: ", what)
        for line in more:
            say(line)


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


def _readable(text: str) -> str:
    """Without orders to a terminal: Spark logs the statements of readers, and values that fit no type."""
    return "\n".join(visible(line) for line in text.expandtabs().split("\n"))


def _follow(places: dict[Path, int]) -> None:
    try:
        while True:
            for file, place in places.items():
                size = file.stat().st_size if file.exists() else 0
                if size < place:
                    place = 0  # the log file was started again
                if size > place:
                    with open(file, errors="replace") as text:
                        text.seek(place)
                        print(_readable(text.read()), end="", flush=True)
                    places[file] = size
            time.sleep(0.3)
    except KeyboardInterrupt:
        return
