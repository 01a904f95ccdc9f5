"""A real Kafka broker for tests: one KRaft node on free loopback ports, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import uuid
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from twinlake.base.waiting import wait_for
from twinlake.config.login import Login
from twinlake.services.ports import free_port

PROJECT = Path(__file__).resolve().parents[1]
KAFKA_JARS = PROJECT / ".jars" / "kafka"


def java() -> str:
    """The java program to run the broker with."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    assert found, "tests of the broker need Java 17 or 21"
    return found


class Broker:
    """One broker process; `stop` ends it, `kill` ends it as a crash would, `start` brings it back."""

    def __init__(self, folder: Path, jars: Path = KAFKA_JARS) -> None:
        self.folder = folder
        self.classpath = str(jars / "*")
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.login = Login(bootstrap_servers=self.bootstrap)
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        controller = free_port()
        (folder / "server.properties").write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder / "data"}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.check.interval.ms=1000
log.initial.task.delay.ms=1000
"""
        )
        (folder / "log4j2.properties").write_text(
            "rootLogger.level=ERROR\nrootLogger.appenderRefs=c\nrootLogger.appenderRef.c.ref=C\n"
            "appender.c.type=Console\nappender.c.name=C\nappender.c.layout.type=PatternLayout\n"
        )
        self._java("kafka.tools.StorageTool", "format", "-t", str(uuid.uuid4()), "-c",
                   str(folder / "server.properties"), wait=True)  # fmt: skip

    def _java(self, main: str, *arguments: str, wait: bool = False) -> subprocess.Popen[bytes]:
        with (self.folder / "out.log").open("ab") as out:
            process = subprocess.Popen(
                [java(), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=4",
                 f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
                 "-cp", self.classpath, main, *arguments],
                stdout=out, stderr=out,
            )  # fmt: skip
        if wait:
            assert process.wait(60) == 0, (self.folder / "out.log").read_text()
        return process

    def start(self) -> Broker:
        """Starts and returns once the broker answers."""
        self.process = self._java("kafka.Kafka", str(self.folder / "server.properties"))
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

        def answers() -> object:
            assert self.process and self.process.poll() is None, (self.folder / "out.log").read_text()
            return admin.list_topics(timeout=2)

        remedy = f"see {self.folder / 'out.log'}"
        wait_for("the broker", answers, 60, every_s=0, unready=(KafkaException,), remedy=remedy)
        return self

    def kill(self) -> None:
        """kill -9."""
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """Ends the process; a test's broker has nothing to save."""
        self.kill()
