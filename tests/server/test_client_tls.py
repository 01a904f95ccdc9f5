"""The client asks through TLS, and only one whose certificate it trusts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.tls import certificate, tls_door
from twinlake.base.errors import UsageError
from twinlake.base.version import VERSION
from twinlake.server.client import LakeClient


class Lake(BaseHTTPRequestHandler):
    """Answers everything with its version and the token that it was shown."""

    def do_GET(self) -> None:
        told = {"version": VERSION, "shown": self.headers["Authorization"], "path": self.path}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing of it is printed."""


@pytest.fixture
def door(tmp_path: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Lake) as lake:
        threading.Thread(target=lake.serve_forever, daemon=True).start()
        with tls_door(lake.server_port, certificate(tmp_path)) as port:
            yield f"https://127.0.0.1:{port}"
        lake.shutdown()


def test_one_whose_certificate_is_in_the_file_is_asked(door: str, tmp_path: Path) -> None:
    client = LakeClient(f"{door}/lake", "secret", ca_file=str(tmp_path / "door.pem"))

    client.refuse_other_version("")
    told = client.status()

    assert (told["shown"], told["path"]) == ("Bearer secret", "/lake/status")


def test_one_whom_nobody_trusts_is_not_asked_and_that_is_final(door: str) -> None:
    with pytest.raises(UsageError, match="is not trusted") as refused:
        LakeClient(door, "secret").status()

    assert "self-signed certificate" in refused.value.why and "ca_file" in refused.value.remedy


def test_one_of_another_name_is_not_asked(door: str, tmp_path: Path) -> None:
    elsewhere = door.replace("127.0.0.1", "localhost")

    with pytest.raises(UsageError, match="is not trusted") as refused:
        LakeClient(elsewhere, "secret", ca_file=str(tmp_path / "door.pem")).status()

    assert "localhost" in refused.value.why


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_refused(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)

    with pytest.raises(UsageError, match=str(file)):
        LakeClient("https://127.0.0.1:1", "secret", ca_file=str(file))
