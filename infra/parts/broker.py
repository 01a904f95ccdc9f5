"""The Kafka broker: one KRaft node from its jars, on loopback."""

from __future__ import annotations

import base64
import socket
import subprocess
import uuid

from infra.parts.part import Command, Context, Part
from infra.parts.ports import HOST
from infra.supervise.record import write_secret
from jobs.topics.kafka import Kafka

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
            name="broker", service="broker", ports=("broker", "controller"),
            prepare=_prepare, command=_command, probe=_probe,
        ),
    )  # fmt: skip


def _prepare(context: Context) -> None:
    folder = context.folders.of("kafka")
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "log4j2.properties").write_text(_LOG4J)
    # A static voter list, so that the address of the controller is not part of the stored state.
    (folder / "server.properties").write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{HOST}:{context.ports["controller"]}
listeners=PLAINTEXT://{HOST}:{context.ports["broker"]},CONTROLLER://{HOST}:{context.ports["controller"]}
advertised.listeners=PLAINTEXT://{HOST}:{context.ports["broker"]}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
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
"""
    )
    if not (folder / "data" / "meta.properties").exists():
        done = subprocess.run(
            [*_java(context, 256), "kafka.tools.StorageTool", "format", "-t", cluster_id(context), "-c",
             str(folder / "server.properties")],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(
                f"formatting Kafka's storage failed: {done.stdout[-500:]} {done.stderr[-500:]}"
            )


def cluster_id(context: Context) -> str:
    """The id of this home's own cluster, made once."""
    file = context.folders.of("kafka") / "cluster_id"
    if not file.exists():
        file.parent.mkdir(mode=0o700, exist_ok=True)
        write_secret(
            file, base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "0")
        )
    return file.read_text()


def _command(context: Context) -> Command:
    folder = context.folders.of("kafka")
    return Command(arguments=(*_java(context, 512), "kafka.Kafka", str(folder / "server.properties")))


def _java(context: Context, heap_mb: int) -> tuple[str, ...]:
    folder = context.folders.of("kafka")
    return (
        str(context.java_home / "bin" / "java"), f"-Xmx{heap_mb}m", "-XX:+UseSerialGC",
        "-Djava.net.preferIPv4Stack=true", f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
        "-cp", str(context.settings.jars / "kafka" / "*"),
    )  # fmt: skip


def _probe(context: Context) -> str:
    address = f"{HOST}:{context.ports['broker']}"
    socket.create_connection(
        (HOST, context.ports["broker"]), timeout=2
    ).close()  # fails at once, unlike the client
    found = Kafka(address).cluster_id()
    if found != cluster_id(context):
        raise ConnectionError(f"another broker (cluster {found}) answers at {address}")
    return address
