"""A schema registry for tests: the few calls of Confluent's API that reading needs, served over HTTP."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeRegistry:
    """Subjects in memory; `down` makes every call fail as a dead registry's would."""

    def __init__(self) -> None:
        self.subjects: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self.down = False
        self.calls = 0
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.calls += 1
                status, body = registry._answer(self.path)
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def add(self, subject: str, schema_id: int, schema: dict[str, Any]) -> None:
        """The next version of a subject."""
        self.subjects.setdefault(subject, []).append((schema_id, schema))

    def _answer(self, path: str) -> tuple[int, Any]:
        if self.down:
            return 503, {"error_code": 50301, "message": "down"}
        _, _, subject, _, *version = path.split("/")
        versions = self.subjects.get(subject)
        if versions is None:
            return 404, {"error_code": 40401, "message": "no such subject"}
        if not version:
            return 200, list(range(1, len(versions) + 1))
        schema_id, schema = versions[int(version[0]) - 1]
        text = json.dumps(schema)
        return 200, {"subject": subject, "version": int(version[0]), "id": schema_id, "schema": text}

    def close(self) -> None:
        """Frees the port."""
        self._server.shutdown()
        self._server.server_close()
