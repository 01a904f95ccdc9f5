"""A schema registry for tests: the few calls of Confluent's API that this project needs, served over HTTP."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient


class FakeRegistry:
    """Subjects in memory; `down` makes every call fail as a dead registry's would.

    `refusal` is what a schema that is not registered yet is answered with: an HTTP status and a body.
    `garbage` is what every call is answered with, and status 200: something else listens on the port.
    """

    def __init__(self) -> None:
        self.subjects: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self.compatibility: dict[str, str] = {}
        self.down = False
        self.refusal: tuple[int, Any] | None = None
        self.garbage: bytes | None = None
        self.calls = 0
        self.login: tuple[str, str] | None = None
        """Who may ask, where not everybody may."""
        self.asked: list[str] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._serve({})

            def do_PUT(self) -> None:
                self._serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            do_POST = do_PUT

            def _serve(self, sent: dict[str, Any]) -> None:
                path = self.path.partition("?")[0]
                registry.calls += 1
                registry.asked.append(f"{self.command} {path}")
                status, body = registry._answer(self.command, path, sent)
                if not registry._admits(self.headers["Authorization"]):
                    status, body = 401, {"error_code": 401, "message": "who are you?"}
                content = json.dumps(body).encode() if registry.garbage is None else registry.garbage
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        # `close` waits for the next look at whether to stop.
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def add(self, subject: str, schema_id: int, schema: dict[str, Any]) -> None:
        """The next version of a subject; one that is not Avro's as `twinlake/topics/registered.py` has it."""
        self.subjects.setdefault(subject, []).append((schema_id, schema))

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        """The next version of a subject; the id that it was given."""
        return int(self._register(subject, _shown(schema))[1]["id"])

    def _admits(self, shown: str | None) -> bool:
        if self.login is None:
            return True
        return shown == "Basic " + base64.b64encode(":".join(self.login).encode()).decode()

    def _answer(self, method: str, path: str, sent: dict[str, Any]) -> tuple[int, Any]:
        if self.garbage is not None:
            return 200, None
        if self.down:
            return 503, {"error_code": 50301, "message": "down"}
        _, kind, subject, *rest = f"{path}/".split("/") if path.count("/") == 1 else path.split("/")
        if kind == "config":
            return self._rule(method, subject, sent)
        if path == "/subjects":
            return 200, list(self.subjects)
        if kind == "schemas":
            return self._by_id(int(rest[0]))
        if kind != "subjects":
            return 404, "no such page"
        return self._register(subject, sent) if method == "POST" else self._version(subject, rest[1:])

    def _rule(self, method: str, subject: str, sent: dict[str, Any]) -> tuple[int, Any]:
        """The rule of everything is that of the subject without a name."""
        if method == "PUT":
            self.compatibility[subject] = sent["compatibility"]
            return 200, sent
        if subject in self.compatibility:
            return 200, {"compatibilityLevel": self.compatibility[subject]}
        return 404, {"error_code": 40408, "message": "no rule of its own"}

    def _version(self, subject: str, version: list[str]) -> tuple[int, Any]:
        versions = self.subjects.get(subject)
        if versions is None:
            return 404, {"error_code": 40401, "message": "no such subject"}
        if not version:
            return 200, list(range(1, len(versions) + 1))
        schema_id, schema = versions[int(version[0]) - 1]
        return 200, {"subject": subject, "version": int(version[0]), "id": schema_id, **_shown(schema)}

    def _by_id(self, schema_id: int) -> tuple[int, Any]:
        for known, schema in (one for versions in self.subjects.values() for one in versions):
            if known == schema_id:
                return 200, _shown(schema)
        return 404, {"error_code": 40403, "message": "no such schema"}

    def _register(self, subject: str, sent: dict[str, Any]) -> tuple[int, Any]:
        schema = _said(sent)
        for schema_id, known in self.subjects.get(subject, []):
            if known == schema:
                return 200, {"id": schema_id}
        if self.refusal is not None:
            return self.refusal
        ids = [schema_id for versions in self.subjects.values() for schema_id, _ in versions]
        schema_id = max(ids, default=0) + 1
        self.add(subject, schema_id, schema)
        return 200, {"id": schema_id}

    def speak_tls(self, certificate: Path, key: Path) -> None:
        """From now on no other way."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http://", "https://")

    def close(self) -> None:
        """Frees the port."""
        self._server.shutdown()
        self._server.server_close()


def _shown(schema: dict[str, Any]) -> dict[str, Any]:
    """As a registry answers: it leaves out the type of Avro."""
    if "schemaType" not in schema or "type" in schema:
        return {"schema": json.dumps(schema)}
    said = schema["schema"]
    return {**schema, "schema": said if isinstance(said, str) else json.dumps(said)}


def _said(sent: dict[str, Any]) -> dict[str, Any]:
    """The inverse."""
    type_ = sent.get("schemaType", "AVRO")
    if type_ == "PROTOBUF":
        more = {"references": sent["references"]} if sent.get("references") else {}
        return {"schemaType": type_, "schema": sent["schema"], **more}
    document: dict[str, Any] = json.loads(sent["schema"])
    return document if type_ == "AVRO" else {"schemaType": type_, "schema": document}


def confluent_client(url: str) -> SchemaRegistryClient:
    """Confluent's own; without a timeout it waits for ever for an answer that does not come."""
    return SchemaRegistryClient({"url": url, "timeout": 10})
