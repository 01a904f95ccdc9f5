"""The edge to the schema registry: Confluent's API, version 7 (Apicurio serves it below /apis/ccompat/v7)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx

from jobs.errors import DifferenceError, UnreachableError

COMPATIBILITY = "BACKWARD"
SUBJECT_UNKNOWN = 40401


class Registry:
    """One registry. Every call raises UnreachableError when it does not answer."""

    def __init__(self, url: str, timeout_s: float = 10.0) -> None:
        self.url = url.rstrip("/")
        self._http = httpx.Client(timeout=timeout_s)
        self._known: dict[tuple[str, int], tuple[int, dict[str, Any]]] = {}

    def schemas(self, subject: str) -> dict[int, dict[str, Any]]:
        """Every schema of the subject by its id: what its records' headers may name.

        Only versions not seen before are fetched, so asking again costs one call.
        """
        versions = self._ask("GET", f"/subjects/{_path(subject)}/versions", missing=[])
        for version in versions:
            if (subject, version) not in self._known:
                found = self._ask("GET", f"/subjects/{_path(subject)}/versions/{version}")
                self._known[subject, version] = (int(found["id"]), json.loads(found["schema"]))
        return {
            schema_id: schema for (of, _), (schema_id, schema) in sorted(self._known.items()) if of == subject
        }

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        """Makes the subject BACKWARD compatible, registers the schema (once) and returns its id.

        A schema that cannot read the records of the one before it is refused with the registry's reasons.
        """
        body = {"schema": json.dumps(schema), "schemaType": "AVRO"}
        self._ask("PUT", f"/config/{_path(subject)}", {"compatibility": COMPATIBILITY})
        # Apicurio's compatibility check says no without a reason; the refusal of the registration has one.
        return int(self._ask("POST", f"/subjects/{_path(subject)}/versions", body)["id"])

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None, missing: Any = None) -> Any:
        try:
            answer = self._http.request(
                method,
                self.url + path,
                json=body,
                headers={"Accept": "application/vnd.schemaregistry.v1+json, application/json"},
            )
        except httpx.HTTPError as error:
            raise self._unreachable(str(error) or type(error).__name__) from error
        if answer.status_code == 404 and missing is not None and _code(answer) == SUBJECT_UNKNOWN:
            return missing
        if answer.status_code == 409 or (answer.status_code == 422 and method == "POST"):
            raise self._incompatible(path.split("/")[2], _message(answer))
        if answer.status_code >= 300:
            raise self._unreachable(f"{method} {path}: HTTP {answer.status_code}: {_message(answer)}")
        try:
            return answer.json() if answer.content else {}
        except ValueError as error:
            raise self._unreachable(f"{method} {path} answered something that is no JSON") from error

    def _unreachable(self, why: str) -> UnreachableError:
        return UnreachableError(
            what=f"the schema registry at {self.url} did not answer",
            why=why,
            remedy="see `twinlake status` and `twinlake logs registry`",
        )

    def _incompatible(self, subject: str, why: str) -> DifferenceError:
        return DifferenceError(
            what=f"the registry refused the new schema of {subject}",
            why=why or f"it is not {COMPATIBILITY} compatible with the newest one",
            remedy="give a new field a default, and do not change the type of a field that exists",
        )


def _path(name: str) -> str:
    return quote(name, safe="")


def _code(answer: httpx.Response) -> int:
    try:
        return int(answer.json().get("error_code", 0))
    except (ValueError, AttributeError):
        return 0


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json().get("message", answer.text))
    except (ValueError, AttributeError):
        return answer.text[:500]
