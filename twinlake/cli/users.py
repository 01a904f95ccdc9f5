"""`twinlake users`: who may sign in to the console and the SQL server, each with a role."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from twinlake.base.errors import TwinlakeError, UnreachableError, UsageError
from twinlake.base.files import alone
from twinlake.cli.jobs import lake_client
from twinlake.cli.output import load_settings, print_json, say, show_rows, tell
from twinlake.config import users
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.sql import USER, users_file

NOTED_S = 3.0
REMOVE = "remove"
Name = Annotated[str, typer.Argument(help="a user")]
Role = Annotated[str, typer.Option(help=f"one of {', '.join(users.ROLES)}")]


def register(app: typer.Typer) -> None:
    """Adds the commands about users."""
    group = typer.Typer(help="Who may sign in to the console and the SQL server.", no_args_is_help=True)
    group.command("add")(add)
    group.command("list")(list_command)
    group.command("remove")(remove)
    group.command("role")(role)
    group.command("password")(password)
    app.add_typer(group, name="users")


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
        print_json([{"name": one.name, "role": one.role} for one in found.values()])
    else:
        show_rows(
            ("user", "role", "may"), [(one.name, one.role, users.ROLES[one.role]) for one in found.values()]
        )


def remove(name: Name) -> None:
    """Remove a user, who is signed out at once."""
    _refuse_reader(name, "removed")
    settings = load_settings()
    users.remove(_file(settings), name, lambda: _note(settings, name, REMOVE))
    tell(f"{name} is removed")
    _tell_nobody_acts(settings)


def role(name: Name, role: Annotated[str, typer.Argument(help=f"one of {', '.join(users.ROLES)}")]) -> None:
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
    made = users.new_password(_file(settings), name, lambda: _note(settings, name, "password"))
    _tell_the_commands(settings, name, made)
    tell(f"{name} may sign in with this password from now on; it is shown this once:")
    say(made)


def _note(settings: Settings, name: str, change: str, role: str | None = None) -> None:
    """In the audit log, before it is done. Nobody waits long for a lake server that is away; one that refuses
    is heard, unless somebody has to go."""
    try:
        lake_client(settings, timeout_s=NOTED_S).user_changed(name, change, role)
    except TwinlakeError as error:
        if change != REMOVE and not isinstance(error, UnreachableError):
            raise
        tell(f"the audit log does not have this: {error.what} ({error.why or error.remedy})")


def _tell_nobody_acts(settings: Settings) -> None:
    if not any(one.acts for one in users.load(_file(settings)).values()):
        tell(
            "nobody can act on the console any more: `twinlake users add NAME --role operator` adds somebody"
        )


def _tell_the_commands(settings: Settings, name: str, password: str) -> None:
    """`twinlake queries` signs in as the first user, by services.json, which is made by the first `up`."""
    with alone(folders_of(settings).secrets_lock):
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
