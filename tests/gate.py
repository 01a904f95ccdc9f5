"""A gate before a real HTTP server: TLS, and a user with a password, as companies have before theirs."""

from __future__ import annotations

import base64
import ssl
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from twinlake.services.certificates import BROKER, Certificates


class Gate:
    """Lets `login` through to `behind`; `answers` counts what it said, by status."""

    def __init__(self, behind: str, folder: Path, login: tuple[str, str]) -> None:
        self.login = login
        self.answers: Counter[int] = Counter()
        certificates = Certificates(folder)
        certificates.make()
        self.ca_file = certificates.authority
        gate, client = self, httpx.Client(base_url=behind, trust_env=False, timeout=30)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                sent = self.rfile.read(int(self.headers["Content-Length"] or 0))
                if self.headers["Authorization"] != gate._shown():
                    return self._answer(
                        401, b'{"error_code": 401, "message": "who are you?"}', "application/json"
                    )
                kind = {"Content-Type": self.headers["Content-Type"]} if sent else {}
                found = client.request(self.command, self.path, content=sent, headers=kind)
                return self._answer(found.status_code, found.content, found.headers.get("Content-Type", ""))

            do_POST = do_PUT = do_DELETE = do_GET

            def _answer(self, status: int, body: bytes, kind: str) -> None:
                gate.answers[status] += 1
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificates.certificate(BROKER), certificates.key(BROKER))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://localhost:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def _shown(self) -> str:
        return "Basic " + base64.b64encode(":".join(self.login).encode()).decode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
