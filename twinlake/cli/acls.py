"""`twinlake acls`: the rights that Twinlake needs at an external Kafka, as commands to paste."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.cli.output import load_settings, say, tell
from twinlake.config.keys import SERVERS
from twinlake.config.login import ROLES, Role
from twinlake.config.settings import Settings

TOOL = "kafka-acls.sh"
_RESOURCES = {"TOPIC": "--topic", "GROUP": "--group", "TRANSACTIONAL_ID": "--transactional-id"}


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("acls")(acls_command)


def acls_command(
    bootstrap_server: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="of the commands; else what [kafka] of the settings names"),
    ] = None,
    command_config: Annotated[
        str, typer.Option(metavar="FILE", help="with the login of who may give rights")
    ] = "admin.properties",
    ingest: Annotated[str | None, typer.Option(metavar="USER", help="who reads topics")] = None,
    producer: Annotated[str | None, typer.Option(metavar="USER", help="of `twinlake produce`")] = None,
    changelog: Annotated[str | None, typer.Option(metavar="USER", help="who sends changelogs")] = None,
) -> None:
    """Print what gives Twinlake its rights at a Kafka of your own, for Kafka's kafka-acls.sh; run nothing.

    Users are those of the settings, where they name any; topics are those of the project's contracts. Twice
    run it changes nothing. Changelogs may make and write topics that begin with `changelog.`.
    """
    settings = load_settings()
    given = {"ingest": ingest, "producer": producer, "changelog": changelog}
    for option, name in {**given, "command-config": command_config}.items():
        if name is not None and not name.strip():
            raise UsageError(f"--{option} names nothing", "it is empty", "leave it out, or name one")
    users = {str(role): given[role] or _user(settings, role) for role in ROLES}
    address = _address(settings, bootstrap_server)
    for line in commands(_rights(settings), users, address, command_config):
        say(line)
    tell(f"{command_config} has the login of who may give rights; run them where Kafka's {TOOL} is")


def commands(
    rights: Iterable[Any], users: Mapping[str, str], address: str, config: str
) -> Iterator[str]:
    """A command for each user and resource."""
    start = [TOOL, "--bootstrap-server", address, "--command-config", config, "--add", "--allow-principal"]
    of = groupby(sorted(rights, key=_granted), _granted)
    for (principal, resource, name, pattern), same in of:
        operations = [part for one in same for part in ("--operation", _words(one.operation))]
        on = [_RESOURCES[resource], name, "--resource-pattern-type", pattern.lower()]
        yield shlex.join([*start, f"User:{users[principal.removeprefix('User:')]}", *operations, *on])


def _granted(right: Any) -> tuple[str, str, str, str]:
    """To whom on what."""
    return right.principal, right.restype.name, right.name, right.resource_pattern_type.name


def _words(operation: Any) -> str:
    """`DESCRIBE_CONFIGS` as the tool writes it."""
    return "".join(part.capitalize() for part in operation.name.split("_"))


def _rights(settings: Settings) -> list[Any]:
    from twinlake.services.rights import rights
    from twinlake.topics.topic import topic_names

    return rights(topic_names(*settings.sources))


def _address(settings: Settings, given: str | None) -> str:
    found = settings.values.kafka.bootstrap_servers if given is None else given
    if not found and given is None:
        raise UsageError(
            "no Kafka is named", "neither [kafka] of the settings nor --bootstrap-server does",
            "add --bootstrap-server HOST:PORT",
        )  # fmt: skip
    try:
        return str(SERVERS(found))
    except ValueError as error:
        raise UsageError(
            f"--bootstrap-server {found!r} is no address", str(error), "give HOST:PORT"
        ) from error


def _user(settings: Settings, role: Role) -> str:
    return settings.values.kafka.login(role).username or role
