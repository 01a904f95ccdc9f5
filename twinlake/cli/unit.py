"""`twinlake unit`: a unit for systemd, so that the services start with the machine and end in time."""

from __future__ import annotations

import getpass
import os
import pwd
from typing import Annotated

import typer

from twinlake.base.errors import UsageError
from twinlake.cli.options import names_in
from twinlake.cli.output import load_settings, tell
from twinlake.services.supervise import control


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("unit")(unit_command)


def unit_command(
    user: Annotated[
        str | None, typer.Option(help="the account that the services run as; your own unless given")
    ] = None,
    only: Annotated[str | None, typer.Option(metavar="A,B", help="as of `twinlake up`")] = None,
    without: Annotated[str | None, typer.Option(metavar="A,B", help="as of `twinlake up`")] = None,
) -> None:
    """Print a unit for systemd that runs `twinlake up` at boot and `twinlake down` at shutdown.

    It is for this data directory, this project and this Python:

    twinlake unit | sudo tee /etc/systemd/system/twinlake.service

    Then `twinlake down`, `sudo systemctl daemon-reload`, `sudo systemctl enable --now twinlake`. It holds no
    variable TWINLAKE_...: settings that this shell gives so belong into /etc/twinlake/environment, mode 600.
    """
    from twinlake.services.supervise.unit import ENVIRONMENT, unit

    names = {"--only": only, "--without": without}
    chosen, left_out = (names_in(option, text) for option, text in names.items())
    settings = load_settings()
    settings.refuse_incomplete()
    control.choose(chosen, left_out, settings.values.given)
    account = user or getpass.getuser()
    _refuse_unknown(account)
    print(
        unit(settings, os.environ, account, [f"{name}={text}" for name, text in names.items() if text]),
        end="",
    )
    if settings.overrides:
        tell(f"set in this shell, and not in the unit: {', '.join(sorted(settings.overrides))}; "
             f"put them into {ENVIRONMENT}, for its owner alone (chmod 600)")  # fmt: skip
    if account == "root":
        tell("every service but the SQL server will run as root: --user names another account, which has to "
             "own the data directory")  # fmt: skip


def _refuse_unknown(account: str) -> None:
    try:
        pwd.getpwnam(account)
    except KeyError:
        raise UsageError(
            f"there is no account {account!r}", "this machine knows none of that name",
            f"make it (`sudo useradd --system {account}`), or name another one",
        ) from None  # fmt: skip
