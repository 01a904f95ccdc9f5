"""What is asked of an external Kafka before anything uses it: who may do what, and what its topics are."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial

from twinlake.base.address import connection_error
from twinlake.base.errors import DeniedError, TwinlakeError, UnreachableError, UsageError
from twinlake.base.times import Clock
from twinlake.config.login import ROLES, Role
from twinlake.config.login import Kafka as KafkaSettings
from twinlake.config.settings import Settings
from twinlake.services.checks.finding import Finding, refuse_clock, tried
from twinlake.topics.kafka import LOG_APPEND_TIME, Kafka, KafkaTopic
from twinlake.topics.topic import topic_names

SERVICE = "broker"
PARTITIONS = 4
CONNECT_S = 5.0
NEEDED: Mapping[Role, tuple[str, ...]] = {
    "ingest": ("READ", "DESCRIBE", "DESCRIBE_CONFIGS"),
    "producer": ("WRITE", "DESCRIBE"),
}
"""What a role has to be allowed of the topics that have a contract."""
_ALL = {"ALL", "ANY"}


def findings(settings: Settings, clock: Clock, remembered: str = "") -> Iterator[Finding]:
    """Every check, as far as its predecessors let it. `remembered` is the cluster that was met before."""
    configured = settings.values.kafka
    clients: dict[Role, Kafka] = {}
    reached = tried(SERVICE, configured.bootstrap_servers, partial(_reach, clients, configured, remembered))
    yield reached
    if reached.error:
        return
    for role in ROLES:
        if configured.login(role) is not configured:  # a lake need not be allowed to write what it reads
            yield tried(SERVICE, role, partial(_let_in, clients, configured, role))
    for name in topic_names(*settings.sources):
        yield from _of_topic(clients, name, clock)


def _reach(clients: dict[Role, Kafka], configured: KafkaSettings, remembered: str) -> str:
    _refuse_silent(configured.bootstrap_servers)
    found = _enter(clients, configured, "ingest")
    if remembered and remembered != found:
        return (f"cluster {found}; until now it was {remembered}: topics that the lake has read stop until "
                "`twinlake topic accept`")  # fmt: skip
    return f"cluster {found}"


def _refuse_silent(servers: str) -> None:
    """At once, and with the reason of each address; the client would only say that none has answered."""
    silent = []
    for server in map(str.strip, servers.split(",")):
        why = connection_error(server, CONNECT_S)
        if not why:
            return
        silent.append(f"{server}: {why}")
    raise UnreachableError(
        f"nobody listens at {servers}", "; ".join(silent),
        "start that Kafka, or fix bootstrap_servers in [kafka] of twinlake.toml",
    )  # fmt: skip


def _let_in(clients: dict[Role, Kafka], configured: KafkaSettings, role: Role) -> str:
    _enter(clients, configured, role)
    return f"{clients[role].login.who} is let in"


def _enter(clients: dict[Role, Kafka], configured: KafkaSettings, role: Role) -> str:
    """The cluster's id, as a client of this role gets it, which is among the clients from now on."""
    client = Kafka(configured.login(role))
    found = client.cluster_id()
    clients[role] = client
    return found


def _of_topic(clients: Mapping[Role, Kafka], name: str, clock: Clock) -> Iterator[Finding]:
    kafka, title, found = clients["ingest"], f"topic {name}", None
    try:
        found = kafka.topic(name)
    except TwinlakeError as error:
        yield Finding(service=SERVICE, looked_at=title, error=error)
        return
    if found is None:
        yield tried(SERVICE, title, partial(_refuse_unmade, kafka, name))
        return
    yield tried(SERVICE, title, partial(_refuse_unfit, kafka, found))
    yield tried(SERVICE, f"{title}: rights", partial(_refuse_rightless, clients, name))
    yield tried(SERVICE, f"{title}: clock", partial(_refuse_future, kafka, found, clock))


def _refuse_unmade(kafka: Kafka, name: str) -> str:
    command = (
        f"kafka-topics.sh --bootstrap-server {kafka.login.bootstrap_servers} --create --topic {name} "
        f"--partitions {PARTITIONS} --config message.timestamp.type={LOG_APPEND_TIME}"
    )
    try:
        kafka.try_to_create(name, PARTITIONS)
    except TwinlakeError as error:
        raise type(error)(
            f"there is no topic {name}, and it cannot be made", f"{error.what}: {error.why}",
            f"have it made: {command}",
        ) from error  # fmt: skip
    return "not there yet: `twinlake up` makes it, with the cluster's own number of replicas"


def _refuse_unfit(kafka: Kafka, topic: KafkaTopic) -> str:
    name = topic.name
    alter = (
        f"kafka-configs.sh --bootstrap-server {kafka.login.bootstrap_servers} --alter --entity-type topics "
        f"--entity-name {name}"
    )
    if _is_zero(topic.id):
        raise UsageError(
            f"topic {name} has no id",
            "the cluster is older than Kafka 2.8, or its metadata are: a topic that is made again could not "
            "be distinguished from the one that was read",
            "upgrade the cluster, or name another one",
        )
    kind = kafka.timestamp_type(name)
    if kind != LOG_APPEND_TIME:
        raise UsageError(
            f"topic {name} has timestamps that producers set ({kind})",
            "lateness and watermark are measured against the broker's clock; a producer's could be anything",
            f"{alter} --add-config message.timestamp.type={LOG_APPEND_TIME}; records that are in it "
            "already keep theirs: with such records recreate it, or give it another name",
        )
    policy = kafka.setting(name, "cleanup.policy")
    if "compact" in policy:
        raise UsageError(
            f"topic {name} is compacted ({policy})", "records may be gone before the log has read them",
            f"{alter} --add-config cleanup.policy=delete",
        )  # fmt: skip
    return f"{len(topic.partitions)} partitions, {kind}"


def _refuse_rightless(clients: Mapping[Role, Kafka], name: str) -> str:
    asked = [role for role in clients if role in NEEDED]  # a changelog's user need not see this topic
    for role in asked:
        needed, login = NEEDED[role], clients[role].login
        rights = clients[role].rights(name)
        if rights & _ALL:
            continue
        if missing := [one for one in needed if one not in rights]:
            raise DeniedError(
                f"{login.who} ({role}) lacks {', '.join(missing)} on topic {name}",
                f"it has {', '.join(sorted(rights)) or 'no right'}",
                f"kafka-acls.sh --bootstrap-server {login.bootstrap_servers} --add --allow-principal "
                f"User:{login.username or '...'} --topic {name} "
                + " ".join(f"--operation {one}" for one in missing),
            )
    return ", ".join(f"{role} has what it needs" for role in asked)


def _refuse_future(kafka: Kafka, topic: KafkaTopic, clock: Clock) -> str:
    """A broker tells no time but by what it appended: only one that is ahead is seen."""
    newest = kafka.newest(topic.name, topic.partitions)
    if newest is None:
        return "no record tells the broker's time"
    at = datetime.fromtimestamp(newest / 1000, UTC)
    if at <= clock():
        return "no record is from the future"
    return refuse_clock(f"the broker (a record of topic {topic.name})", at, clock)


def _is_zero(topic_id: str) -> bool:
    return set(topic_id) <= {"A", "="} or topic_id == str(uuid.UUID(int=0))
