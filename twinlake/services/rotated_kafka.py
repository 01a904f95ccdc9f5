"""The passwords of the locked broker's users, as they are rotated: by the mechanism that they have none for.

Kafka keeps one password of a user for each mechanism of SCRAM, and the broker lets in by two. So a new one
holds beside the old one until that is deleted, and clients come by whichever services.json names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twinlake.base.errors import DeniedError, TwinlakeError, UnreachableError
from twinlake.config.login import OTHER_SCRAM, ROLES, SCRAM, Login
from twinlake.config.settings import Services, Settings
from twinlake.services.broker_security import is_locked, supervisor_access
from twinlake.services.folders import folders_of
from twinlake.services.part import Context
from twinlake.services.ports import Ports

_OTHER = {SCRAM: OTHER_SCRAM, OTHER_SCRAM: SCRAM}


def make(services: Services, random: Callable[[], str]) -> str:
    """What `kafka_access` becomes: each role with another password, by the other mechanism."""
    return json.dumps(
        {
            role: {**login, "password": random(), "mechanism": _OTHER[login["mechanism"]]}
            for role, login in services.kafka_access.items()
        }
    )


def accept(settings: Settings, old: str, new: str) -> None:
    """Lets the users in by the new passwords, too."""
    from twinlake.services.rights import admit  # here: every command knows of rotations, and Kafka is slow

    with _admin(settings) as admin:
        admit(admin, {role: Login.of("", shown) for role, shown in json.loads(new).items()})


def keep_only(settings: Settings, access: str) -> None:
    """Forgets what the users have of the other mechanism."""
    from twinlake.services.rights import admit_no_more

    with _admin(settings) as admin:
        admit_no_more(admin, {role: _OTHER[shown["mechanism"]] for role, shown in json.loads(access).items()})


def opens(services: Services, access: str) -> tuple[bool, ...]:
    from twinlake.topics.kafka import Kafka

    found = []
    for shown in json.loads(access).values():
        try:
            Kafka(Login.of(services.bootstrap_servers, shown)).cluster_id()
            found.append(True)
        except DeniedError:
            found.append(False)
        except TwinlakeError:
            pass
    return tuple(found)


def why_not(settings: Settings) -> str:
    if settings.values.kafka.is_external:
        return "Kafka is one of your own"
    access = settings.services().kafka_access
    if not is_locked(settings) or {*access} != {*ROLES}:
        return "the broker is not locked: it asks for no password"
    if not any(opens(settings.services(), json.dumps(access))):
        return "the broker has to be there, and does not answer"
    return ""


@contextmanager
def _admin(settings: Settings) -> Iterator[Any]:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        yield AdminClient({**supervisor_access(_context(settings)).client(), "log_level": 0})
    except KafkaException as error:
        raise UnreachableError(
            "the users of the broker could not be changed", str(error.args[0]), "see `twinlake logs broker`"
        ) from error


def _context(settings: Settings) -> Context:
    folders = folders_of(settings)
    return Context(
        settings=settings, folders=folders, ports=Ports(folders.run / "ports.json"), java_home=Path(),
        services=settings.services(),
    )  # fmt: skip
