"""A standalone Spark cluster on loopback: a master and workers of PySpark's own jars, each with its folders.

Its processes must show a secret to each other, and share no folder but the lake.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
from pathlib import Path

import pyspark

from tests.broker import free_port
from twinlake.base.waiting import wait_for
from twinlake.setup.java import find_java

SPARK = Path(pyspark.__file__).parent
WORKER_MEMORY = "1500m"


_HIDING = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')
_COPYING = (
    "unshare", "--mount", "sh", "-c",
    'cp "$0/lake.json" . && mount -t tmpfs none "$0" && cp lake.json "$0" && exec "$@"',
)  # fmt: skip


class Process:
    """One of Spark's daemons, with a folder of its own; what it starts dies with it, as on a host."""

    def __init__(
        self, folder: Path, *arguments: str, hidden: Path | None = None, copied: bool = False
    ) -> None:
        """`hidden` is a folder at whose place it finds an empty one, as on a host that has not mounted it, or
        a copy."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.log = folder, folder / "out.log"
        environ = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "JAVA_HOME": str(find_java(os.environ)),
            "SPARK_HOME": str(SPARK), "SPARK_CONF_DIR": str(folder / "conf"), "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "local"), "SPARK_DAEMON_MEMORY": "256m",
            "TZ": "America/New_York",  # what the host's clock shows must not matter
        }  # fmt: skip
        for made in ("conf", "local"):
            (folder / made).mkdir(exist_ok=True)
        within = [*(_COPYING if copied else _HIDING), str(hidden)] if hidden else []
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [*within, str(SPARK / "bin" / "spark-class"), *arguments], cwd=folder, env=environ,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def until_said(self, text: str) -> None:
        def said() -> bool | None:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            return True if text in self.log.read_text() else None

        wait_for(f"{self.folder.name}: {text}", said, 180, every_s=0.2)

    def kill(self) -> None:
        """kill -9 of it and of its executors."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Cluster:
    """`start`, then `worker` for each worker; `stop` ends all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"spark://127.0.0.1:{free_port()}"
        self.workers: dict[int, Process] = {}
        folder.mkdir(parents=True)
        self.secret = folder / "secret"
        self.secret.write_text(secrets.token_hex(16) + "\n")
        self.secret.chmod(0o600)
        self._settings = folder / "spark.conf"
        self._settings.write_text(
            "spark.authenticate true\n"
            f"spark.authenticate.secret {self.secret.read_text()}"
            "spark.master.rest.enabled false\n"  # Spark refuses it beside a secret
        )
        self._master: Process | None = None

    def start(self) -> Cluster:
        port = self.url.rpartition(":")[2]
        self._master = Process(
            self.folder / "master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1",
            "--port", port, "--webui-port", "0", "--properties-file", str(self._settings),
        )  # fmt: skip
        self._master.until_said("I have been elected leader")
        return self

    def worker(self, number: int, hidden: Path | None = None, copied: bool = False) -> Process:
        """Starts a worker with one core, which may not see a folder, or only a copy of it."""
        folder = self.folder / f"worker-{number}"
        (folder / "out.log").unlink(missing_ok=True)
        self.workers[number] = Process(
            folder, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1",
            "--memory", WORKER_MEMORY, "--work-dir", str(folder / "work"), "--webui-port", "0",
            "--properties-file", str(self._settings), self.url, hidden=hidden,
            copied=copied,
        )  # fmt: skip
        self.workers[number].until_said("Successfully registered with master")
        return self.workers[number]

    def said(self, number: int, pattern: str) -> list[str]:
        """Lines of the executors' logs of a worker that has the pattern."""
        logs = (self.folder / f"worker-{number}" / "work").rglob("stderr")
        return [
            line
            for log in logs
            for line in log.read_text(errors="replace").splitlines()
            if re.search(pattern, line)
        ]

    def tasks(self, number: int) -> int:
        """How many tasks the worker's executors have begun, ever."""
        return len(self.said(number, r"Running task \d"))

    def settings(self, **more: str) -> str:
        """The part of twinlake.toml that names this cluster."""
        conf = {
            "spark.executor.memory": "1g", "spark.authenticate": "true",
            "spark.authenticate.secret.file": str(self.secret), **more,
        }  # fmt: skip
        lines = "".join(f'"{name}" = "{value}"\n' for name, value in conf.items())
        return f'[spark]\nmaster = "{self.url}"\ndriver_memory = "2g"\n[spark.conf]\n{lines}'

    def stop(self) -> None:
        for worker in self.workers.values():
            worker.kill()
        if self._master:
            self._master.kill()
