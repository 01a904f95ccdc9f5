"""What the command line does with the services: ask for them, wait for them, end them, describe them."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinlake.base.errors import TimedOutError, UnreachableError, UsageError
from twinlake.base.waiting import wait_for
from twinlake.config.library import FETCH_JARS
from twinlake.config.settings import Services, Settings
from twinlake.services import external, metrics
from twinlake.services.all import all_parts, service_names
from twinlake.services.folders import Folders, folders_of
from twinlake.services.part import Context, Part
from twinlake.services.ports import Ports
from twinlake.services.supervise import process, record
from twinlake.services.supervise.process import MARK, end, passed_on
from twinlake.services.supervise.record import Record, supervisor_alive

_ATTEMPTS = 3
"""A part that ended this often without ever being ready is reported."""
TURN_S = 180.0
"""Longer than it takes to end everything."""


@dataclass(frozen=True, kw_only=True)
class Ready:
    """One service that answers."""

    service: str
    answer: str
    seconds: float
    given: bool = False


def choose(
    only: Collection[str], without: Collection[str], given_services: Collection[str] = ()
) -> tuple[Part, ...]:
    """The parts of the named services and all that they need; UsageError for a wrong name, or no part.

    `given_services` are those that somebody has already.
    """
    parts = all_parts(given_services)
    known = service_names(parts)
    if unknown := {*only, *without} - set(known):
        names = ", ".join(sorted(unknown))
        raise UsageError(f"there is no service {names}", "", f"known: {', '.join(known)}")
    by_name = {part.name: part for part in parts}
    chosen: set[str] = set()

    def add(part: Part) -> None:
        chosen.add(part.name)
        for need in part.needs:
            add(by_name[need])

    for part in parts:
        if part.service not in without and (not only or part.service in only):
            add(part)
    if not chosen:
        raise UsageError(
            "no service is left to start", "those of --only are all in --without", "leave one out"
        )
    if {"broker", "registry"} <= chosen:
        chosen.add("topics")
    return tuple(part for part in parts if part.name in chosen)


def bring_up(
    settings: Settings, parts: tuple[Part, ...], environ: Mapping[str, str], say: Callable[[str], None],
    patience_s: float | None = None, refuse: Callable[[], None] = lambda: None,
) -> Iterator[Ready]:  # fmt: skip
    """Asks for the parts and yields each service when all of it answers; UnreachableError when one fails, or
    nothing has got ready for so long (`[limits] start_seconds` unless given).

    `say` is given what an operator should know of the data directory. `refuse` is asked while no other
    command changes what runs: what it raises has started nothing.
    """
    check_prerequisites(settings, environ)
    folders = folders_of(settings)
    _refuse_containers(folders, "up --wait")
    folders.make()
    if closed := folders.close():
        say(closed)
    with one_command(folders):
        refuse()
        _refuse_what_runs_otherwise(settings)
        before = {part.name: record.load(folders, part.name).restarts for part in parts}
        record.want(folders, record.wanted(folders) | {part.name for part in parts})
        _ensure_supervisor(settings, folders, environ)
    yield from _wait(
        settings, folders, parts, before, patience_s or float(settings.values.limits.start_seconds)
    )


@contextmanager
def one_command(folders: Folders) -> Iterator[None]:
    """While one command changes what runs, the next one waits: each would undo half of the other's work."""
    with open(folders.command_lock, "a") as file:

        def is_ours() -> bool | None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            return True

        wait_for("another `twinlake up`, `down` or `rotate` of this data directory to end", is_ours, TURN_S)
        yield


def _refuse_containers(folders: Folders, instead: str) -> None:
    if folders.containers.exists():
        raise UsageError(
            "the services of this data directory run in containers", f"{folders.containers} says so",
            f"`docker compose {instead}` on the host",
        )  # fmt: skip


def _refuse_what_runs_otherwise(settings: Settings) -> None:
    """Of another project, or by other settings: it would go on as it was started."""
    names = ("supervisor", *(part.name for part in all_parts()))
    runs = any(record.of(settings, name).alive for name in names)
    if not runs or not settings.services_file.exists():
        return
    of_project = settings.services().project
    if of_project and Path(of_project).resolve() != settings.project.root.resolve():
        raise UsageError(
            f"what runs in {settings.home} is of another project", f"it was started for {of_project}",
            "`twinlake down`, then `twinlake up`; or name another data directory with --home",
        )  # fmt: skip
    was = settings.services().settings
    if was and was != settings.values.digest:
        raise UsageError(
            "the settings have changed since the services were started",
            f"{settings.file.name}, or a variable TWINLAKE_..., is not as it was then",
            "`twinlake down`, then `twinlake up`",
        )


def check_prerequisites(settings: Settings, environ: Mapping[str, str]) -> None:
    """UsageError where too few files may be open, or there is no Java, no jars, or no package that is to send
    metrics."""
    from twinlake.setup.ensure import java_or_refuse  # here: no other command needs what fetches jars
    from twinlake.setup.jars import COMPLETE

    process.ensure_open_files()
    java_or_refuse(environ)
    for needed in (settings.jars / COMPLETE, settings.classes):
        if not needed.exists():
            raise UsageError("the jars are not here", f"{needed} is missing", FETCH_JARS)
    metrics.refuse_without_sdk(settings.values.metrics)


def _ensure_supervisor(settings: Settings, folders: Folders, environ: Mapping[str, str]) -> None:
    def answers() -> bool:
        return supervisor_alive(settings) and settings.services_file.exists()

    if answers():
        return
    log = folders.log("supervisor")
    record.rotate(log)
    with open(log, "ab") as out:
        started = subprocess.Popen(  # -P: a module of the project is not taken for one of Python's
            [sys.executable, "-P", "-m", "twinlake.services.supervise.supervisor", "--home",
             str(settings.home), "--project", str(settings.project.root), "--jars", str(settings.jars)],
            env={**passed_on(environ), **settings.overrides, MARK: folders.mark("supervisor")},
            cwd=settings.project.root, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True,
        )  # fmt: skip

    def outcome() -> bool | None:
        if answers():
            return True
        has_ended = started.poll() is not None and not supervisor_alive(settings)
        return False if has_ended else None

    try:
        runs = wait_for("the supervisor", outcome, 30, every_s=0.05)
    except TimedOutError:
        runs = False
    if not runs:
        raise UnreachableError(
            "the supervisor could not be started",
            "\n".join(record.tail(log, 8)),
            "see `twinlake logs supervisor`",
        )


def _wait(
    settings: Settings, folders: Folders, parts: tuple[Part, ...], before: Mapping[str, int],
    patience_s: float,
) -> Iterator[Ready]:  # fmt: skip
    began = moved = time.monotonic()
    pending = {name: [part for part in parts if part.service == name] for name in service_names(parts)}
    while pending:
        context = context_of(settings)
        wanted = record.wanted(folders)
        if gone := [part for its_parts in pending.values() for part in its_parts if part.name not in wanted]:
            raise UnreachableError(
                f"{gone[0].service} was ended before it was ready", "somebody has asked for `twinlake down`",
                "`twinlake up` starts it again",
            )  # fmt: skip
        for service, its_parts in list(pending.items()):
            records = [record.load(folders, part.name) for part in its_parts]
            is_ready = all(one.state == "ready" for one in records)
            if is_ready and (answer := _answer(context, its_parts)) is not None:
                del pending[service]
                seconds, is_external = time.monotonic() - began, all(part.given for part in its_parts)
                yield Ready(service=service, answer=answer, seconds=seconds, given=is_external)
                moved = time.monotonic()  # the caller may have made a release meanwhile
                continue
            for part, its_record in zip(its_parts, records, strict=True):
                tried = its_record.restarts - before[part.name]
                if its_record.failures and tried and (its_record.error or tried >= _ATTEMPTS):
                    raise _failure(folders, part, its_record)
        if pending and time.monotonic() - moved > patience_s:
            part = next(iter(pending.values()))[-1]
            late = f"nothing has got ready for {patience_s:.0f} seconds (`start_seconds` in `[limits]`)"
            raise _failure(folders, part, record.load(folders, part.name), late)
        time.sleep(0.15)


def _answer(context: Context, parts: list[Part]) -> str | None:
    try:
        return [part.probe(context) for part in parts][-1]
    except Exception:  # not yet, or no longer: the caller asks again
        return None


def _failure(
    folders: Folders, part: Part, its_record: Record, otherwise: str = "its process ended"
) -> UnreachableError:
    said = its_record.error or {}
    lines = record.tail(folders.log(part.name), 15)
    why = said.get("why") or its_record.note or otherwise
    return UnreachableError(
        said.get("what") or f"{part.service} does not get ready",
        "\n".join([why, *(f"  | {line}" for line in lines)]),
        said.get("remedy") or f"see `twinlake logs {part.service}`; `twinlake down` ends what was started",
    )


def context_of(settings: Settings) -> Context:
    """What parts may know, read from disk, to probe them: without a Java, nothing is started with it."""
    services = settings.services()  # first: where nothing was started, nothing is written
    folders = folders_of(settings)
    return Context(
        settings=settings, folders=folders, ports=Ports(folders.run / "ports.json"), java_home=Path(),
        services=services,
    )  # fmt: skip


def bring_down(settings: Settings, say: Callable[[str], None]) -> None:
    """Ends the supervisor, then every recorded part, those that need others first."""
    folders = folders_of(settings)
    if not folders.run.exists():
        return
    _refuse_containers(folders, "down")
    with one_command(folders):
        _end_all(folders, say)
        # it would keep the next supervisor from starting; addresses and passwords are made again
        Services.drop_torn(settings.services_file)


def _end_all(folders: Folders, say: Callable[[str], None]) -> None:
    record.want(folders, ())
    end(record.load(folders, "supervisor").identity, folders.mark("supervisor"), 10)
    record.forget(folders, "supervisor")
    folders.supervisor_pid.unlink(missing_ok=True)
    left = {part.name: part for part in (*external.parts(), *all_parts())}  # whichever were wanted
    with ThreadPoolExecutor(8) as pool:
        while left:
            needed = {need for part in left.values() for need in part.needs}
            wave = [part for part in left.values() if part.name not in needed]
            list(pool.map(lambda part: _end(folders, part, say), wave))
            for part in wave:
                del left[part.name]


def _end(folders: Folders, part: Part, say: Callable[[str], None]) -> None:
    its_record = record.load(folders, part.name)
    was_alive = its_record.alive
    end(its_record.identity, folders.mark(part.name), part.grace_s)
    record.forget(folders, part.name)
    if was_alive:
        say(part.name)


def describe(settings: Settings) -> list[dict[str, Any]]:
    """Every part as it is now: state, pid, restarts, and whether it answers at this moment."""
    folders = folders_of(settings)
    if not settings.services_file.exists():
        return []
    parts = all_parts(_given(settings))
    context = context_of(settings)
    wanted = record.wanted(folders)
    if folders.containers.exists():
        chosen = [part for part in parts if part.command]
    else:
        chosen = [part for part in parts if part.name in wanted or record.load(folders, part.name).alive]
    with ThreadPoolExecutor(max(1, len(chosen))) as pool:
        return list(pool.map(lambda part: _describe(context, part), chosen))


def _describe(context: Context, part: Part) -> dict[str, Any]:
    its_record = record.load(context.folders, part.name)
    wrong = part.error(context)  # first: a part may break after its probe has answered
    answer, answers = "", False
    try:
        answer, answers = part.probe(context), True
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"[:200]
    alive = its_record.alive or part.command is None
    state = its_record.state if alive or its_record.state != "ready" else "ended"
    if context.folders.containers.exists():
        state = "ready" if answers else "not ready"  # a container is not seen from another one
    return {
        "part": part.name,
        "service": part.service,
        "given": part.given,
        "state": state,
        "answers": answers and state == "ready",
        "answer": answer,
        "pid": its_record.identity.pid if its_record.identity and its_record.alive else None,
        "restarts": its_record.restarts,
        "since": its_record.since,
        "note": part.note(context),
        "error": its_record.error or (wrong and wrong.to_json()),
    }


def _given(settings: Settings) -> Collection[str]:
    """The services that were given when the others were started."""
    return settings.services().given if settings.services_file.exists() else ()


def part_of_port(name: str) -> str:
    """Which part listens on the port of that name."""
    return next(part.name for part in all_parts() if name in part.ports)


def log_files(settings: Settings, name: str) -> list[Path]:
    """The logs of a part, or of all parts of a service, written yet or not."""
    parts = all_parts(_given(settings))
    names = [part.name for part in parts if name in (part.name, part.service)]
    if name == "supervisor":
        names = ["supervisor"]
    if any(part.given for part in parts if part.name in names):
        raise UsageError(
            f"the {name} is not ours", "it is given in twinlake.toml, its log is where it runs", "look there"
        )
    if not names:
        known = ", ".join(dict.fromkeys(n for p in parts for n in (p.service, p.name)))
        raise UsageError(f"there is no service {name}", "", f"known: {known}, supervisor")
    folders = folders_of(settings)
    return [folders.log(each) for each in names]
