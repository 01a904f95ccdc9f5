"""Clients of other machines come by TLS alone, by the name in the certificate, by whichever protocol."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.broker import free_port
from tests.project import PROJECT
from tests.reading.adbc import PROGRAM, Adbc, AdbcError
from tests.reading.conftest import PASSWORD, Released, SqlServer, started
from twinlake import read
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.waiting import wait_for

NAME = "localhost"
"""Of the certificate: one that this machine resolves, and 127.0.0.1 is not."""
BRIDGE = ("10.231.77.1", "10.231.77.2")

pytestmark = pytest.mark.skipif(
    not shutil.which("openssl"), reason="openssl is not installed; it makes the certificate"
)


def make_certificate(folder: Path) -> None:
    """An authority and what it has signed; `other.pem` is another authority."""
    run = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    for name in ("ca", "other"):
        words = ["-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem"]
        subprocess.run([*run, *words], cwd=folder, check=True, capture_output=True)
    words = ["-CA", "ca.pem", "-CAkey", "ca.key", "-subj", f"/CN={NAME}", "-addext",
             f"subjectAltName=DNS:{NAME}", "-keyout", "key.pem", "-out", "chain.pem"]  # fmt: skip
    subprocess.run([*run, *words], cwd=folder, check=True, capture_output=True)
    if shutil.which("keytool"):
        for name in ("ca", "other"):
            store = ["-keystore", f"{name}.p12", "-storetype", "PKCS12", "-storepass", "changeit"]
            subprocess.run(
                ["keytool", "-importcert", "-noprompt", "-alias", name, "-file", f"{name}.pem", *store],
                cwd=folder, check=True, capture_output=True,
            )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certificates")
    make_certificate(made)
    return made


@pytest.fixture(scope="module")
def ports() -> tuple[int, int, int]:
    return free_port(), free_port(), free_port()


@pytest.fixture(scope="module")
def open_sql(
    released: Released, folder: Path, ports: tuple[int, int, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqlServer]:
    """A SQL server that listens for others on every address of this machine."""
    server = SqlServer(home=released.lake.parent, scratch=tmp_path_factory.mktemp("scratch"), more=(
        "--listen", "0.0.0.0", "--name", NAME, "--tls-port", str(ports[0]), "--jdbc-tls-port", str(ports[1]),
        "--flight-tls-port", str(ports[2]), "--certificate", str(folder / "chain.pem"),
        "--key", str(folder / "key.pem"),
    ))  # fmt: skip
    with started(server):
        yield server


def test_a_client_reads_by_the_name_in_the_certificate_and_who_has_signed_it(
    open_sql: SqlServer, ports: tuple[int, int, int], folder: Path
) -> None:
    at = {"user": "analyst", "password": PASSWORD, "address": f"https://{NAME}:{ports[0]}"}

    assert read("latest_order", ca_file=folder / "ca.pem", **at).num_rows == 50
    for wrong in ({"ca_file": folder / "other.pem"}, {}):
        with pytest.raises(UnreachableError, match=r"does not hold.*CERTIFICATE_VERIFY_FAILED"):
            read("latest_order", **at, **wrong)
    with pytest.raises(UnreachableError, match=r"does not hold.*(?i:mismatch|not valid for)"):
        read("latest_order", ca_file=folder / "ca.pem", **{**at, "address": f"https://127.0.0.1:{ports[0]}"})
    with pytest.raises(UsageError, match="user or password"):
        read("latest_order", ca_file=folder / "ca.pem", **{**at, "password": "wrong"})
    with pytest.raises(UsageError, match="would be readable on the way"):
        read("latest_order", **{**at, "address": f"http://twinlake.example.com:{ports[0]}"})


def test_nothing_is_answered_without_tls_or_by_an_old_one(
    open_sql: SqlServer, ports: tuple[int, int, int], folder: Path
) -> None:
    for port in ports:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
            plain.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
            plain.settimeout(20)
            assert b"release" not in _all(plain)
        old = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", port)) as given, pytest.raises(ssl.SSLError):
            old.wrap_socket(given, server_hostname=NAME)


def _all(from_: socket.socket) -> bytes:
    found = b""
    try:
        while piece := from_.recv(4096):
            found += piece
    except OSError:  # cut off is refused, too
        pass
    return found


def test_another_name_is_refused(open_sql: SqlServer, ports: tuple[int, int, int], folder: Path) -> None:
    answer = httpx.get(
        f"https://{NAME}:{ports[0]}/status", headers={"Host": "evil.example.com"}, trust_env=False,
        verify=ssl.create_default_context(cafile=str(folder / "ca.pem")),
    )  # fmt: skip

    assert answer.status_code == 403 and "is not served" in answer.text


@pytest.mark.skipif(not shutil.which("keytool"), reason="keytool is not installed; it makes a trust store")
@pytest.mark.parametrize("driver", ["2.3", "4"])
def test_jdbc_checks_the_certificate(
    open_sql: SqlServer, ports: tuple[int, int, int], folder: Path, request: pytest.FixtureRequest,
    driver: str,
) -> None:  # fmt: skip
    """Neither driver checks the name in it."""
    if driver == "4":
        jvm = request.getfixturevalue("tools")(f"{request.getfixturevalue('drivers_folder')}/*")
    else:
        jvm = request.getfixturevalue("analyst_jvm")
    jvm.java.lang.Class.forName("org.apache.hive.jdbc.HiveDriver")

    def connect(host: str, store: str) -> Any:
        more = f"ssl=true;sslTrustStore={folder / store};trustStorePassword=changeit"
        return jvm.java.sql.DriverManager.getConnection(
            f"jdbc:hive2://{host}:{ports[1]}/serve;{more}", "analyst", PASSWORD
        )

    connection = connect(NAME, "ca.p12")
    try:
        found = connection.createStatement().executeQuery("SELECT count(*) FROM latest_order")
        assert found.next() and found.getLong(1) == 50
    finally:
        connection.close()
    with pytest.raises(Exception, match=r"(?i)PKIX|certification path|certificate"):
        connect(NAME, "other.p12")


def test_a_client_that_leaves_ends_its_statement(
    open_sql: SqlServer, ports: tuple[int, int, int], folder: Path
) -> None:
    trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    with pytest.raises(httpx.TimeoutException):
        httpx.post(
            f"https://{NAME}:{ports[0]}/query", verify=trust, trust_env=False, auth=("analyst", PASSWORD),
            headers={"X-Twinlake-Query": "1"}, timeout=5,
            json={"sql": "SELECT count(*) FROM range(100000000000) WHERE sqrt(id) < 0"},
        )  # fmt: skip

    def none_runs() -> bool | None:
        found = httpx.get(f"{open_sql.url}/queries", auth=("analyst", PASSWORD), trust_env=False, timeout=30)
        return found.json() == [] or None

    wait_for("the statement to end", none_runs, 30)


def test_adbc_checks_the_certificate_and_its_name(
    open_sql: SqlServer, ports: tuple[int, int, int], folder: Path, adbc: Callable[[str], Adbc]
) -> None:
    read = {"sql": "SELECT count(*) FROM latest_order", "user": "analyst"}

    assert adbc(f"grpc+tls://{NAME}:{ports[2]}")("rows", **read, ca=str(folder / "ca.pem")) == [[50]]
    for address, ca in (
        (f"grpc+tls://{NAME}:{ports[2]}", "other.pem"), (f"grpc+tls://127.0.0.1:{ports[2]}", "ca.pem"),
        (f"grpc://{NAME}:{ports[2]}", "ca.pem"),
    ):  # fmt: skip
        with pytest.raises(AdbcError):
            adbc(address)("rows", **read, ca=str(folder / ca), seconds=20)


@pytest.fixture
def elsewhere() -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Runs a program in another network, that reaches this machine by one address and not by loopback."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("to make another network takes root and the command ip")
    name = f"twinlake{os.getpid() % 10_000}"
    here, there = f"tlh{os.getpid() % 10_000}", f"tlt{os.getpid() % 10_000}"
    try:
        for words in (
            f"netns add {name}", f"link add {here} type veth peer name {there}",
            f"link set {there} netns {name}", f"addr add {BRIDGE[0]}/30 dev {here}", f"link set {here} up",
        ):  # fmt: skip
            subprocess.run(["ip", *words.split()], check=True, capture_output=True)
        for words in (f"addr add {BRIDGE[1]}/30 dev {there}", f"link set {there} up"):
            subprocess.run(["ip", "-n", name, *words.split()], check=True, capture_output=True)
        yield lambda *words, **more: subprocess.run(
            ["ip", "netns", "exec", name, *words], capture_output=True, text=True, timeout=120, **more
        )
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
        subprocess.run(["ip", "link", "del", here], capture_output=True)


def test_from_another_network_it_is_reached_by_tls_and_by_nothing_else(
    open_sql: SqlServer, ports: tuple[int, int, int], folder: Path,
    elsewhere: Callable[..., subprocess.CompletedProcess[str]],
) -> None:  # fmt: skip
    program = """
import json, socket, sys
from twinlake import read
at, port, ca, password, *closed = sys.argv[1:]
real = socket.getaddrinfo
socket.getaddrinfo = lambda host, *more, **named: real(at if host == "localhost" else host, *more, **named)
named = {"address": f"https://localhost:{port}", "user": "analyst", "password": password, "ca_file": ca}
rows = read("latest_order", **named)
open_ports = []
for one in closed:
    try:
        socket.create_connection((at, int(one)), timeout=3).close()
        open_ports.append(one)
    except OSError:
        pass
print(json.dumps({"rows": rows.num_rows, "open": open_ports}))
"""
    done = elsewhere(
        sys.executable, "-c", program, BRIDGE[0], str(ports[0]), str(folder / "ca.pem"), PASSWORD,
        str(open_sql.port), str(open_sql.jdbc_port), str(open_sql.flight_port), *map(str, ports[1:]),
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"rows": 50, "open": [*map(str, ports[1:])]}


def test_adbc_reads_from_another_network(
    open_sql: SqlServer, ports: tuple[int, int, int], folder: Path, drivers_folder: Path,
    elsewhere: Callable[..., subprocess.CompletedProcess[str]],
) -> None:  # fmt: skip
    asked = {"do": "rows", "sql": "SELECT count(*) FROM latest_order", "ca": str(folder / "ca.pem")}
    wrong = {**asked, "password": "wrong"}, {**asked, "ca": str(folder / "other.pem")}
    lines = [{**one, "name": NAME, "seconds": 20} for one in (asked, *wrong)] + [{**asked, "seconds": 20}]

    done = elsewhere(
        str(drivers_folder / "python" / "bin" / "python"), str(PROGRAM), f"grpc+tls://{BRIDGE[0]}:{ports[2]}",
        PASSWORD, input="".join(f"{json.dumps(one)}\n" for one in lines),
    )  # fmt: skip

    found, *refused = map(json.loads, done.stdout.splitlines())
    assert found == {"found": [[50]]}, done.stderr
    for one, why in zip(refused, ("user or password", "authority", "certificate"), strict=True):
        assert why in one["error"], one
