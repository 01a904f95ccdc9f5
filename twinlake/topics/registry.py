"""The edge to the schema registry: Confluent's client (Apicurio serves its API below /apis/ccompat/v7)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2  # what Confluent's client speaks HTTP with; httpx is another library, with other errors
from confluent_kafka.schema_registry import (
    RegisteredSchema,
    Schema,
    SchemaRegistryClient,
    SchemaRegistryError,
)

from twinlake.base.errors import DeniedError, DifferenceError, TwinlakeError, UnreachableError
from twinlake.base.protoc import MOST_IMPORTS
from twinlake.config.login import RegistryLogin
from twinlake.topics import registered

COMPATIBILITY = "BACKWARD"
SUBJECT_UNKNOWN = 40401
SCHEMA_UNKNOWN = 40403
FITTING = ("BACKWARD", "BACKWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
"""The rules by which the newest schema can read what was written before it."""
DENIED = (401, 403)
REFUSED = (409, 422)
"""HTTP's word for a schema that is not compatible, and for one that is not a schema."""


class Registry:
    """One registry. A call raises UnreachableError where it does not answer, DeniedError where it refuses."""

    def __init__(self, login: RegistryLogin | str, timeout_s: float = 10.0) -> None:
        """An address alone is of a registry that asks for nothing."""
        self.login = RegistryLogin(url=login) if isinstance(login, str) else login
        self.url = self.login.url.rstrip("/")
        try:
            # Whoever asks decides when to ask again, and without a timeout the client waits for ever.
            self._client = SchemaRegistryClient({"url": self.url, "timeout": timeout_s, "max.retries": 0})
        except ValueError as error:
            raise self._failed(str(error)) from error
        # The client uses the environment's proxies, and has no option against it; no proxy reaches a
        # registry on the loopback interface.
        rest = self._client._rest_client
        verify = self.login.trust() if self.url.startswith("https://") else rest.verify
        rest.session = httpx2.Client(
            verify=verify, auth=self.login.basic_auth, timeout=rest.timeout, trust_env=False
        )

    def schemas(self, subject: str) -> dict[int, dict[str, Any]]:
        """Every schema of the subject by its id, in the form of `topics/registered.py`: what its records'
        headers may name."""
        # The client remembers versions and ids; a registry that was restored or wiped means others by them.
        self._client.clear_caches()
        with self._asking(subject):
            try:
                versions = sorted(self._client.get_versions(subject))
                found = [self._client.get_version(subject, version) for version in versions]
            except SchemaRegistryError as error:
                if error.error_code == SUBJECT_UNKNOWN:
                    return {}
                raise
            return dict(map(self._numbered, found))

    def schema(self, schema_id: int) -> dict[str, Any] | None:
        """The schema that has this id now, of whatever subject; None where none has."""
        self._client.clear_caches()
        with self._asking(f"schema {schema_id}"):
            try:
                found = self._client.get_schema(schema_id)
            except SchemaRegistryError as error:
                if error.error_code == SCHEMA_UNKNOWN:
                    return None
                raise
            return self._read(found)

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        """Registers the schema (once) and returns its id, after it has seen to the subject's rule: one that
        the newest schema can read older records by is left as it is, any other becomes BACKWARD.

        A schema that cannot read the records of the one before it is refused with the registry's reasons.
        """
        asked = _asked(schema)
        # The client answers from memory for a schema that it has read before; only the registry knows
        # what it holds now.
        self._client.clear_caches()
        with self._asking(subject):
            if (self._rule(subject) or self._rule(None)) not in FITTING:
                self._client.set_compatibility(subject, COMPATIBILITY)
            try:
                # Apicurio's compatibility check says no without a reason; the refusal here has one.
                return int(self._client.register_schema(subject, asked, normalize_schemas=False))
            except SchemaRegistryError as error:
                if error.http_status_code in REFUSED:
                    raise self._refused(subject, error) from error
                raise

    def rule(self, subject: str) -> str | None:
        """Which changes of its schema the registry lets pass, by the subject's own rule; None without one."""
        with self._asking(subject):
            return self._rule(subject)

    def subjects(self) -> list[str]:
        """Every subject that this client may see."""
        with self._asking("subjects"):
            return list(self._client.get_subjects())

    def clock(self) -> datetime | None:
        """What time the registry has, by the header of an answer; None where it does not say."""
        with self._asking("subjects"):
            said = self._client._rest_client.session.get(f"{self.url}/subjects").headers.get("date")
            return parsedate_to_datetime(said) if said else None

    def _rule(self, subject: str | None) -> str | None:
        try:
            return str(self._client.get_compatibility(subject))
        except SchemaRegistryError as error:
            if error.http_status_code == 404:  # the subject, or a rule of its own
                return None
            raise

    def _numbered(self, found: RegisteredSchema) -> tuple[int, dict[str, Any]]:
        if found.schema_id is None:
            raise ValueError("a version without an id")
        return found.schema_id, self._read(found.schema)

    def _read(self, found: Schema) -> dict[str, Any]:
        type_, text = str(found.schema_type or registered.AVRO), found.schema_str
        if text is None:
            raise ValueError("a version without a schema")
        if type_ != registered.PROTOBUF:
            return registered.of(type_, _document(text))
        imports = self._imports(found)
        return registered.of(type_, text, **({"imports": imports} if imports else {}))

    def _imports(self, schema: Schema) -> dict[str, str]:
        """The texts of what a schema refers to, by the names that it imports them by; more of them than it
        may have are not all there."""
        found: dict[str, str] = {}
        pending = list(schema.references or ())
        while pending and len(found) <= MOST_IMPORTS:
            one = pending.pop()
            if one.name in found or one.name is None or one.subject is None:
                continue
            known = self._client.get_version(one.subject, one.version or 1).schema
            found[one.name] = known.schema_str or ""
            pending += known.references or ()
        return found

    @contextmanager
    def _asking(self, subject: str) -> Iterator[None]:
        """One error for all that the client raises when no registry answers, or something else does."""
        try:
            yield
        except SchemaRegistryError as error:
            said = str(error.error_message or "it gave no reason")[:500]
            if error.http_status_code in DENIED:
                raise self._denied(f"{subject}: HTTP {error.http_status_code}: {said}") from error
            raise self._failed(f"{subject}: HTTP {error.http_status_code}: {said}") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._failed(str(error) or type(error).__name__) from error
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            # The client does not check a 200: no JSON is a ValueError, JSON of another shape one of the rest.
            raise self._failed(f"{subject}: the answer is not a schema registry's: {error}") from error

    def _failed(self, why: str) -> TwinlakeError:
        if "CERTIFICATE_VERIFY_FAILED" in why:
            return DeniedError(
                what=f"no trusted connection to the schema registry at {self.url}",
                why=f"{why} (trusted: {self.login.ca_file or 'the authorities that this system trusts'})",
                remedy="have ca_file in [registry] of twinlake.toml name the authority that signed its "
                "certificate, for the address as it is written there",
            )
        return UnreachableError(
            what=f"the schema registry at {self.url} did not answer",
            why=why,
            remedy="see `twinlake status` and `twinlake logs registry`; for one of your own, see to it, or "
            "fix [registry] in twinlake.toml",
        )

    def _denied(self, why: str) -> DeniedError:
        return DeniedError(
            what=f"the schema registry at {self.url} does not let {self.login.who} do that",
            why=why,
            remedy="fix username and password_file in [registry] of twinlake.toml, or have it given the "
            "rights; `twinlake doctor` tries them",
        )

    def _refused(self, subject: str, error: SchemaRegistryError) -> DifferenceError:
        return DifferenceError(
            what=f"the registry refused the new schema of {subject}",
            why=str(error.error_message or f"it is not {COMPATIBILITY} compatible with the newest one"),
            remedy="give a new field a default, and do not change the type of a field that exists; or, of a "
            "changelog, stop it and start it with another topic: the subject may be somebody else's",
        )


def _asked(schema: dict[str, Any]) -> Schema:
    type_ = registered.schema_type(schema)
    said = schema if type_ == registered.AVRO else schema["schema"]
    return Schema(said if isinstance(said, str) else json.dumps(said), type_)


def _document(text: str) -> Any:
    """What a schema says; the text where that is no JSON, or more than is read here: nobody can read records
    of such a one, which is no reason not to read the others."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
