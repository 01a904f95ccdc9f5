"""The Kafka broker: one KRaft node from its jars, on loopback."""

from __future__ import annotations

import base64
import socket
import subprocess
import uuid
from pathlib import Path

from twinlake.base.files import SECRET, replace_file
from twinlake.services.broker_security import certificates, is_locked, listeners, supervisor_access
from twinlake.services.part import Command, Context, Part
from twinlake.services.ports import HOST
from twinlake.topics.kafka import Kafka

_LOG4J = """rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
logger.start.name = kafka.server.KafkaRaftServer
logger.start.level = INFO
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1} - %m%n
"""


def parts() -> tuple[Part, ...]:
    return (
        Part(
            name="broker", service="broker", ports=("broker", "broker_admin", "controller"),
            prepare=_prepare, command=_command, probe=_probe, note=_note,
        ),
    )  # fmt: skip


def _prepare(context: Context) -> None:
    folder = _folder(context)
    if is_locked(context.settings):
        certificates(context).make()
    replace_file(folder / "log4j2.properties", _LOG4J)
    # A static voter list, so that the address of the controller is not part of the stored state.
    replace_file(
        folder / "server.properties",
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{HOST}:{context.ports["controller"]}
{listeners(context)}controller.listener.names=CONTROLLER
log.dirs={folder / "data"}
num.partitions=4
log.message.timestamp.type=LogAppendTime
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.hours=720
""",
    )
    if not (folder / "data" / "meta.properties").exists():
        done = subprocess.run(
            [*_java(context, 256), "kafka.tools.StorageTool", "format", "-t", cluster_id(context), "-c",
             str(folder / "server.properties")],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        if done.returncode:
            said = f"{done.stdout[-500:]} {done.stderr[-500:]}"
            raise RuntimeError(f"formatting Kafka's storage failed: {said}")


def cluster_id(context: Context) -> str:
    """The id of this home's own cluster, made once."""
    file = _folder(context) / "cluster_id"
    if not file.exists():
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        replace_file(file, made.replace("-", "0"), SECRET)
    return file.read_text()


def _command(context: Context) -> Command:
    config = _folder(context) / "server.properties"
    return Command(arguments=(*_java(context, 512), "kafka.Kafka", str(config)))


def _java(context: Context, heap_mb: int) -> tuple[str, ...]:
    log4j = _folder(context) / "log4j2.properties"
    return (
        str(context.java_home / "bin" / "java"), f"-Xmx{heap_mb}m", "-XX:+UseSerialGC",
        "-Djava.net.preferIPv4Stack=true", f"-Dlog4j2.configurationFile={log4j}",
        "-cp", str(context.settings.jars / "kafka" / "*"),
    )  # fmt: skip


def _probe(context: Context) -> str:
    address = f"{HOST}:{context.ports['broker']}"
    # Fails at once where nobody listens; the client would go on trying.
    socket.create_connection((HOST, context.ports["broker"]), timeout=2).close()
    found = Kafka(supervisor_access(context)).cluster_id()
    if found != cluster_id(context):
        raise ConnectionError(f"another broker (cluster {found}) answers at {address}")
    return address


def _note(context: Context) -> str:
    """By what the clients were given at the start, not by what the settings say since."""
    return "locked: TLS, users with passwords" if context.services.kafka_access else ""


def _folder(context: Context) -> Path:
    return context.folders.private("kafka")
