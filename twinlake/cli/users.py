"""`twinlake users`: who may sign in to the console and the SQL server, each with a role and rights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from twinlake.base import quote
from twinlake.base.errors import TwinlakeError, UnreachableError, UsageError
from twinlake.base.files import alone
from twinlake.cli.jobs import lake_client
from twinlake.cli.output import load_settings, print_json, say, show_rows, tell
from twinlake.config import users
from twinlake.config.rights import ALL, MASKS, Rights, rights_of, unknown
from twinlake.config.settings import Settings
from twinlake.lake.catalog.described import classified
from twinlake.reading.client import Waiting, ask
from twinlake.services.folders import folders_of
from twinlake.services.sql import USER, users_file

NOTED_S = 3.0
REMOVE = "remove"
TAKING_AWAY = (REMOVE, "disable")
"""Changes that are made though the lake server refuses to note them: somebody has to go."""
Name = Annotated[str, typer.Argument(help="a user")]
_ROLES = "|".join(users.ROLES)
Role = Annotated[str, typer.Option(metavar=_ROLES, help="what the user may do")]


def register(app: typer.Typer) -> None:
    """Adds the commands about users."""
    group = typer.Typer(help="Who may sign in to the console and the SQL server.", no_args_is_help=True)
    group.command("add")(add)
    group.command("list")(list_command)
    group.command("remove")(remove)
    group.command("role")(role)
    group.command("password")(password)
    group.command("rights")(rights)
    group.command("disable")(disable)
    group.command("enable")(enable)
    app.add_typer(group, name="users")
    app.add_typer(group, name="user", hidden=True, help="The same as `twinlake users`.")


def add(name: Name, role: Role = users.ANALYST) -> None:
    """Add a user; prints the password, which is made here and kept nowhere."""
    settings = load_settings()
    made = users.add(_file(settings), name, role, lambda: _note(settings, name, "add", role))
    tell(f"{name} may sign in with the role {role}, with this password, which is shown this once:")
    say(made)


def list_command(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """Show every user with their role."""
    found = users.load(_file(load_settings()))
    if as_json:
        print_json([
            {"name": one.name, "role": one.role, "disabled": one.disabled, "rights": one.rights.to_json()}
            for one in found.values()
        ])  # fmt: skip
    else:
        show_rows(
            ("user", "role", "may", "reads"),
            [
                (one.name, one.role, "not sign in: disabled" if one.disabled else users.ROLES[one.role],
                 _reads(one.rights))
                for one in found.values()
            ],
        )  # fmt: skip


def remove(name: Name) -> None:
    """Remove a user, who is signed out at once."""
    _refuse_reader(name, "removed")
    settings = load_settings()
    users.remove(_file(settings), name, lambda: _note(settings, name, REMOVE))
    tell(f"{name} is removed")
    _tell_nobody_acts(settings)


def role(
    name: Name, role: Annotated[str, typer.Argument(metavar=_ROLES, help="what the user may do")]
) -> None:
    """Give a user another role."""
    _refuse_reader(name, "given another role")
    settings = load_settings()
    users.set_role(_file(settings), name, role, lambda: _note(settings, name, "role", role))
    tell(f"{name} has the role {role} now")
    _tell_nobody_acts(settings)


def password(name: Name) -> None:
    """Make another password of a user, and print it; of the first user services.json gets it, too."""
    _refuse_reader(name, "changed here")
    settings = load_settings()
    with alone(folders_of(settings).secrets_lock):  # a rotation writes both files, too
        made = users.new_password(_file(settings), name, lambda: _note(settings, name, "password"))
        _tell_the_commands(settings, name, made)
    tell(f"{name} may sign in with this password from now on; it is shown this once:")
    say(made)


def rights(
    name: Name,
    tables: Annotated[
        list[str] | None,
        typer.Option(help="may read what this names: `table`, `schema.table`, with * for any letters"),
    ] = None,
    hide: Annotated[list[str] | None, typer.Option(help="`table.column` that is not there for them")] = None,
    mask: Annotated[
        list[str] | None,
        typer.Option(
            help=f"WHAT=MASK: a classification of contracts, * for all, or `table.column`; {', '.join(MASKS)}"
        ),
    ] = None,
    rows: Annotated[
        list[str] | None, typer.Option(help="TABLE: CONDITION, SQL over its columns, of the rows they see")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="let them read everything again")] = False,
) -> None:
    """Say what a user reads: these options replace all that was said before. Without any, show it."""
    settings = load_settings()
    file = _file(settings)
    given = (tables or (), hide or (), mask or (), rows or ())
    if everything and any(given):
        raise UsageError("--all was given with other options", "it lets them read everything", "give one")
    if not everything and not any(given):
        found = users.known(file, name).rights
        print_json(found.to_json())
        if found == ALL:
            tell(f"{name} reads everything")
        return
    _refuse_reader(name, "held to less")
    made = rights_of(*given)
    _try_conditions(settings, made)
    users.set_rights(file, name, made, lambda: _note(settings, name, "rights", rights=made.to_json()))
    tell(f"{name} reads {_reads(made)}; where they lost a right, their statements and connections end")
    for one in unknown(made, classified(settings.lake)):
        tell(f"{one} names no table, column or classification there is now: it protects or opens nothing yet")


def disable(name: Name) -> None:
    """Let a user in no more until they are enabled; role, rights and password stay."""
    _set_disabled(name, True)
    tell(f"{name} may not sign in any more; `twinlake users enable {name}` lets them in again")


def enable(name: Name) -> None:
    """Let a disabled user in again, with the password of before."""
    _set_disabled(name, False)
    tell(f"{name} may sign in again")


def _set_disabled(name: str, disabled: bool) -> None:
    _refuse_reader(name, "disabled" if disabled else "enabled")
    settings = load_settings()
    change = "disable" if disabled else "enable"
    users.set_disabled(_file(settings), name, disabled, lambda: _note(settings, name, change))
    _tell_nobody_acts(settings)


def _reads(found: Rights) -> str:
    return "everything" if found == ALL else json.dumps(found.to_json(), ensure_ascii=False)


def _try_conditions(settings: Settings, found: Rights) -> None:
    """Ask the SQL server for no row by each condition; one that is wrong would let that user see nothing."""
    for table, condition in found.rows.items():
        sql = f"SELECT 1 FROM serve.{quote.name(table)} WHERE (\n{condition}\n) LIMIT 0"
        try:
            ask(settings.services(), sql, waiting=Waiting(say=lambda _: None, check=_away))
        except UnreachableError:
            tell(f"the SQL server does not run: the condition of {table} was not tried")
        except UsageError as error:
            raise UsageError(
                f"the condition of {table} is wrong", error.why, "correct it; nothing was changed"
            ) from error


def _away() -> None:
    raise UnreachableError("the SQL server does not answer", "", "")


def _note(
    settings: Settings, name: str, change: str, role: str | None = None,
    rights: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """In the audit log, before it is done. Nobody waits long for a lake server that is away; one that refuses
    is heard, unless somebody has to go."""
    try:
        lake_client(settings, timeout_s=NOTED_S).user_changed(name, change, role, rights)
    except TwinlakeError as error:
        if change not in TAKING_AWAY and not isinstance(error, UnreachableError):
            raise
        tell(f"the audit log does not have this: {error.what} ({error.why or error.remedy})")


def _tell_nobody_acts(settings: Settings) -> None:
    if not any(one.acts and not one.disabled for one in users.load(_file(settings)).values()):
        tell(
            "nobody can act on the console any more: `twinlake users add NAME --role operator` adds somebody"
        )


def _tell_the_commands(settings: Settings, name: str, password: str) -> None:
    """`twinlake queries` signs in as the first user, by services.json, which is made by the first `up`. The
    caller has the lock of secrets."""
    if settings.services_file.exists() and (services := settings.services()).console_user == name:
        replace(services, console_password=password).save(settings.services_file)


def _file(settings: Settings) -> Path:
    file = users_file(folders_of(settings))
    if not file.exists():
        raise UnreachableError(
            "there are no users yet", f"{file} does not exist", "`twinlake up` makes it, with its first users"
        )
    return file


def _refuse_reader(name: str, what: str) -> None:
    if name == USER:
        raise UsageError(
            f"{USER} cannot be {what}",
            "`twinlake query` and `twinlake.read` read as this user, whose password services.json has",
            "add others for people: `twinlake users add NAME`",
        )
