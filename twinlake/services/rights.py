"""The rights of the embedded broker's users: made, and taken back, so that they are what is listed here.

Nobody has any other; the broker and the supervisor alone may do everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from twinlake.base.errors import DeniedError, UnreachableError
from twinlake.base.waiting import wait_for
from twinlake.config.login import ROLES
from twinlake.services.broker_security import supervisor_access
from twinlake.services.part import Context
from twinlake.topics.kafka import Kafka
from twinlake.topics.refusal import QUIET

CHANGELOGS = "changelog."
"""How the topics of changelogs begin where the broker is locked: Kafka gives rights by beginnings."""
OPENED_S = 30.0
ANSWER_S = 20.0
ITERATIONS = 8192


def apply_acls(context: Context, topics: Iterable[str]) -> None:
    """Gives the broker the users with their passwords, and each of them its rights, no more and no fewer.

    Returns once all of them get in.
    """
    admin = AdminClient({**QUIET, **supervisor_access(context).client()})
    try:
        _admit(admin, context)
        wanted = set(rights(topics))
        has = {right for role in ROLES for right in _rights_of(admin, role)}
        _all(admin.delete_acls([filter_of(right) for right in has - wanted]) if has - wanted else {})
        _all(admin.create_acls(list(wanted - has)) if wanted - has else {})
    except KafkaException as error:
        raise UnreachableError(
            "the users of the broker could not be made", str(error.args[0]), "see `twinlake logs broker`"
        ) from error

    def all_get_in() -> bool | None:
        with suppress(DeniedError):  # a broker learns of users a moment after it has taken them
            for role in ROLES:
                Kafka(context.services.kafka(role)).cluster_id()
            return True
        return None

    wait_for("the users of the broker to be let in", all_get_in, OPENED_S)


def rights(topics: Iterable[str]) -> list[AclBinding]:
    """What each role may do; nothing else is allowed to anybody."""

    def may(role: str, kind: str, name: str, pattern: str, *operations: str) -> list[AclBinding]:
        return [
            AclBinding(
                ResourceType[kind], name, ResourcePatternType[pattern], f"User:{role}", "*",
                AclOperation[operation], AclPermissionType.ALLOW,
            )
            for operation in operations
        ]  # fmt: skip

    found: list[AclBinding] = []
    for topic in topics:
        found += may("producer", "TOPIC", topic, "LITERAL", "WRITE", "DESCRIBE")
        found += may("ingest", "TOPIC", topic, "LITERAL", "READ", "DESCRIBE", "DESCRIBE_CONFIGS")
    found += may("ingest", "GROUP", "twinlake-", "PREFIXED", "READ")
    operations = ("CREATE", "WRITE", "READ", "DESCRIBE", "DESCRIBE_CONFIGS")
    found += may("changelog", "TOPIC", CHANGELOGS, "PREFIXED", *operations)
    found += may("changelog", "TRANSACTIONAL_ID", "twinlake-", "PREFIXED", "WRITE", "DESCRIBE")
    found += may("changelog", "GROUP", "twinlake-", "PREFIXED", "READ")
    return found


def _admit(admin: Any, context: Context) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
    _all(
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion(role, info, context.services.kafka(role).password.encode())
                for role in ROLES
            ]
        )
    )


def _rights_of(admin: Any, role: str) -> list[AclBinding]:
    anything: Any = None
    asked = AclBindingFilter(
        ResourceType.ANY, anything, ResourcePatternType.ANY, f"User:{role}", anything, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip
    found: list[AclBinding] = admin.describe_acls(asked, request_timeout=ANSWER_S).result(ANSWER_S)
    return found


def filter_of(right: AclBinding) -> Any:
    return AclBindingFilter(
        right.restype, right.name, right.resource_pattern_type, right.principal, right.host, right.operation,
        right.permission_type,
    )  # fmt: skip


def _all(answers: Mapping[Any, Future[Any]]) -> None:
    for answer in answers.values():
        answer.result(ANSWER_S)
