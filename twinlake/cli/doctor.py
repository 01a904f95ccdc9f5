"""`twinlake doctor`: every setting with its origin, and every check that needs nothing started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.files import nearest
from twinlake.base.times import utc_now
from twinlake.cli.options import refuse_beside
from twinlake.cli.output import error_lines, load_settings, print_json, say, show_rows
from twinlake.cli.progress import working
from twinlake.config import users
from twinlake.config.keys import Section
from twinlake.config.sections import SECTIONS
from twinlake.config.settings import Settings
from twinlake.config.settings_example import example
from twinlake.lake import formats
from twinlake.lake.storage.fit import check_store
from twinlake.services import external, sql
from twinlake.services.checks import (
    airflow as check_airflow,
)
from twinlake.services.checks import (
    kafka as check_kafka,
)
from twinlake.services.checks import (
    registry as check_registry,
)
from twinlake.services.checks.finding import Finding, tried
from twinlake.services.folders import folders_of
from twinlake.services.ports import is_free, taken_error
from twinlake.services.supervise import control
from twinlake.services.supervise.record import of as record_of
from twinlake.services.upgrade import state as upgrade
from twinlake.spark.cluster import check_master

if TYPE_CHECKING:
    from twinlake.config.values import Values

HIDDEN = "(given)"
_ROOM_BYTES = 1 << 30
"""With less room no lake should begin."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(doctor)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    show_example: Annotated[
        bool, typer.Option("--example", help="Print a twinlake.toml with every key, all commented out.")
    ] = False,
) -> None:
    """Check the settings and all that they name, without starting anything; exit code 1 when one is wrong.

    Shows every setting and where it comes from: twinlake.toml, a variable TWINLAKE_<SECTION>_<KEY>, or its
    default. Then every external service is asked whether it answers, lets us in, and is as it must be.
    """
    if show_example:
        refuse_beside("--example", {"--json": as_json})
        print(example(), end="")
        return
    settings = load_settings()
    with working("asking every external service"):
        rows, found, external = examined(settings)
    if as_json:
        print_json(as_told(settings, rows, found, external))
    else:
        _show(rows, found, external)
    if any(one.error for one in found):
        raise typer.Exit(1)


Rows = list[tuple[str, str, str]]


def examined(settings: Settings) -> tuple[Rows, list[Finding], tuple[str, ...]]:
    """Every setting, every finding, and which services are external; of wrong settings only those."""
    try:
        settings.refuse_incomplete()
    except UsageError as error:
        return [], [Finding(service="settings", looked_at=str(settings.file), error=error)], ()
    return list(shown(settings.values)), list(checks(settings)), settings.values.given


def as_told(
    settings: Settings, rows: Rows, found: list[Finding], external: tuple[str, ...]
) -> dict[str, Any]:
    """The same for programs."""
    return {
        "home": str(settings.home), "file": _file(settings), "ok": not any(one.error for one in found),
        "settings": [dict(zip(("name", "value", "from"), row, strict=True)) for row in rows],
        "checks": [_as_json(one, external) for one in found],
    }  # fmt: skip


def check_given(settings: Settings, services: Collection[str]) -> None:
    """Raises the first thing that is wrong with one of these services, before anything is started."""
    for one in _of_given(settings, services):
        if one.error:
            raise one.error


def checks(settings: Settings) -> Iterator[Finding]:
    """Every check of an installation; none starts or changes anything, but the folder of a lake is made."""
    values = settings.values
    yield tried("settings", str(settings.file), lambda: _whether_read(settings))
    yield tried("installation", "Java and jars", lambda: _prerequisites(settings))
    yield tried("installation", str(settings.home), lambda: _room(settings.home))
    yield from _upgrade(settings)
    yield from _users(settings)
    yield tried("sql", "what holds the SQL server", lambda: _confinement(settings))
    for name, port in values.ports.fixed.items():
        yield tried("ports", f"{name} = {port}", partial(_port, settings, name, port))
    yield tried("spark", values.spark.master, partial(check_master, values))
    yield from _of_given(settings, (*values.given, "lake"))


def _of_given(settings: Settings, services: Collection[str]) -> Iterator[Finding]:
    if "broker" in services:
        file = external.cluster_file(folders_of(settings))
        remembered = settings.services().cluster_id if settings.services_file.exists() else ""
        before = file.read_text() if file.exists() else remembered
        yield from check_kafka.findings(settings, utc_now, before)
    if "registry" in services:
        yield from check_registry.findings(settings, utc_now)
    if "airflow" in services:
        yield from check_airflow.findings(settings, utc_now)
    if "lake" in services:
        yield tried("lake", str(settings.lake), lambda: _lake(settings))


def shown(values: Values) -> Iterator[tuple[str, str, str]]:
    """Name, value and origin of every setting; of a secret, only whether and where it is given."""
    for name, section in SECTIONS.items():
        yield from _of_section(name, section, getattr(values, name), values.origins)


def _of_section(
    name: str, section: Section, values: Any, origins: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    for key, one in section.keys.items():
        full, value = f"{name}.{key}", getattr(values, key)
        origin = origins.get(full, "default")
        if isinstance(one, Section):
            if value is not None:
                yield from _of_section(full, one, value, origins)
        elif one.is_secret:
            if value:
                yield full, HIDDEN, origin
        elif isinstance(value, Mapping):
            for option in value:
                yield f"{full}.{option}", HIDDEN if origin.startswith("TWINLAKE_") else value[option], origin
        else:
            yield full, one.shown if value in (None, "") else str(value), origin


def _whether_read(settings: Settings) -> str:
    if settings.file.exists():
        return f"{len(settings.values.origins)} settings are given"
    if settings.values.origins:
        return "there is no such file; the environment gives some settings"
    return "there is no such file: every setting has its default, everything is started here"


def _prerequisites(settings: Settings) -> str:
    control.check_prerequisites(settings, os.environ)
    return "are here"


def _room(home: Path) -> str:
    folder = nearest(home)
    if not os.access(folder, os.W_OK):
        raise UsageError(
            f"{folder} cannot be written", f"this user has no right to, and the state goes to {home}",
            "fix its rights, or name another folder with --home",
        )  # fmt: skip
    free = shutil.disk_usage(folder).free
    if free < _ROOM_BYTES:
        raise TwinlakeError(
            f"the disk of {folder} is nearly full", f"{free:,} bytes are free", "make room there"
        )
    return f"{free / 1e9:,.0f} GB are free"


def _users(settings: Settings) -> Iterator[Finding]:
    """Nothing before `twinlake up` has made them."""
    file = sql.users_file(folders_of(settings))
    if file.exists():
        yield tried("users", str(file), lambda: f"{users.refuse_damaged(file)} may sign in")


def _upgrade(settings: Settings) -> Iterator[Finding]:
    """Nothing where none was made."""
    folders = folders_of(settings)
    if not folders.upgrade.exists():
        return

    def whether_finished() -> str:
        if error := upgrade.error_seen(folders):
            raise error
        kept = "what it kept of before is there until `twinlake upgrade --done`"
        return f"finished; {kept}"

    yield tried("installation", "the last upgrade", whether_finished)


def _confinement(settings: Settings) -> str:
    if sql.namespaces():
        return "a file system view of its own"
    file = sql.unconfined_file(folders_of(settings))
    if file.exists():
        return f"nothing but its own rules, as {file.name} accepts"
    raise sql.unconfined_error(folders_of(settings))


def _lake(settings: Settings) -> str:
    """Its format; where it is in a place of its own, the store there is tried out first."""
    if not settings.values.lake.uri:
        return formats.described(settings.lake)
    check_store(settings.lake, utc_now())
    text = "can be written, publishes a name once, and its clock is right"
    return f"{text}; {formats.described(settings.lake)}"


def _port(settings: Settings, name: str, port: int) -> str:
    if is_free(port):
        return "free"
    alive = record_of(settings, control.part_of_port(name)).alive
    if not (alive and control.context_of(settings).ports[name] == port):
        raise taken_error(name, port)
    return "in use by this installation"


def _as_json(one: Finding, given_services: Collection[str]) -> dict[str, Any]:
    return {
        "service": one.service, "given": one.service in given_services, "checked": one.looked_at,
        "ok": one.error is None, "found": one.found, "error": one.error and one.error.to_json(),
    }  # fmt: skip


def _file(settings: Settings) -> str | None:
    return str(settings.file) if settings.file.exists() else None


def _show(rows: Rows, found: list[Finding], given_services: Collection[str]) -> None:
    if rows:
        show_rows(("setting", "value", "from"), rows)
        say("")
    wrong, right = ("wrong", "bold red"), ("ok", "green")
    show_rows(
        ("", "service", "checked", "found"),
        [
            (
                wrong if one.error else right,
                f"{one.service} (external)" if one.service in given_services else one.service,
                one.looked_at, one.error.what if one.error else one.found,
            )
            for one in found
        ],
    )  # fmt: skip
    for one in found:
        if one.error:
            say("")
            for line in error_lines(one.error.to_json()):
                say(line)
