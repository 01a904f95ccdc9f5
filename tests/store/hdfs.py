"""A real HDFS of its own: a name node and a data node as processes, on loopback, below a folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import hdfs_native
import pyspark
import pytest

from tests.project import PROJECT
from twinlake.base.location import Remote
from twinlake.base.waiting import wait_for
from twinlake.setup.java import find_java

_JARS = PROJECT / ".jars" / "hdfs"
_NODES = {"namenode": "server.namenode.NameNode", "datanode": "server.datanode.DataNode"}
_WITH_SPARK = ("hadoop-client-api", "hadoop-client-runtime", "slf4j", "log4j", "commons-logging", "jcl-over")


class Hdfs:
    """Readers who are not the user of this process may read and not write, as permissions are by default."""

    def __init__(self, folder: Path) -> None:
        if not [*_JARS.glob("*.jar")]:
            pytest.fail("the jars of an HDFS are not here: run `make store-test`, which fetches them")
        self.folder = folder
        self.port = _free_port()
        self.uri = f"hdfs://127.0.0.1:{self.port}"
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "conf").mkdir(parents=True)
        (folder / "conf" / "core-site.xml").write_text(_xml({"fs.defaultFS": self.uri}))
        (folder / "conf" / "hdfs-site.xml").write_text(_xml(self._settings()))
        (folder / "conf" / "log4j2.properties").write_text(_LOGGING)
        self._run(_NODES["namenode"], "-format", "-force", "-nonInteractive")

    def start(self) -> Hdfs:
        """All of it that does not run."""
        for name, node in _NODES.items():
            if name in self._nodes:
                continue
            with (self.folder / f"{name}.log").open("ab") as log:
                self._nodes[name] = subprocess.Popen(self._command(node), stdout=log, stderr=log)
        wait_for("HDFS", self._answers, 90, every_s=0.5, unready=(Exception,), remedy=f"see {self.folder}")
        return self

    def lake(self, name: str) -> Remote:
        return Remote(f"{self.uri}/{name}")

    def quota(self, place: Remote, names: int) -> None:
        """The folder may hold so many files and folders, itself among them."""
        self._run("tools.DFSAdmin", "-setQuota", str(names), place.path)

    def kill(self, name: str) -> None:
        node = self._nodes.pop(name)
        node.send_signal(signal.SIGKILL)
        node.wait()

    def stop(self) -> None:
        for name in [*self._nodes]:
            self.kill(name)

    def _answers(self) -> bool:
        """Whether a data node takes what is written."""
        with hdfs_native.Client(self.uri).create(
            "/.started", hdfs_native.WriteOptions(overwrite=True)
        ) as out:
            out.write(b"it does")
        return True

    def _settings(self) -> dict[str, str]:
        settings = {
            "dfs.replication": "1", "dfs.namenode.name.dir": f"file://{self.folder}/name",
            "dfs.datanode.data.dir": f"file://{self.folder}/data",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.namenode.safemode.extension": "0", "dfs.datanode.handler.count": "4",
            "dfs.namenode.handler.count": "8", "dfs.datanode.max.transfer.threads": "256",
        }  # fmt: skip
        for one in (
            "namenode.http-address",
            "datanode.address",
            "datanode.http.address",
            "datanode.ipc.address",
        ):
            settings[f"dfs.{one}"] = "127.0.0.1:0"
        return settings

    def _command(self, node: str, *arguments: str) -> list[str]:
        with_spark = Path(pyspark.__file__).parent / "jars"
        jars = [jar for jar in with_spark.glob("*.jar") if jar.name.startswith(_WITH_SPARK)]
        classes = ":".join(map(str, [self.folder / "conf", *_JARS.glob("*.jar"), *sorted(jars)]))
        return [
            str(find_java(os.environ) / "bin" / "java"), "-Xmx384m", "-XX:+UseSerialGC",
            "-Djava.net.preferIPv4Stack=true", "-cp", classes, f"org.apache.hadoop.hdfs.{node}", *arguments,
        ]  # fmt: skip

    def _run(self, node: str, *arguments: str) -> None:
        done = subprocess.run(self._command(node, *arguments), capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def _xml(settings: dict[str, str]) -> str:
    properties = (
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    return f"<configuration>{''.join(properties)}</configuration>"


_LOGGING = """rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c: %m%n
"""


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
