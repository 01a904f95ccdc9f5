"""Handles: what a client holds of a statement is the statement itself, so that the server keeps nothing.

A handle is as good as its text: who shows one is asked for a password, and reads by their own rights.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error
from dataclasses import dataclass, replace

from twinlake.base.errors import UsageError

LONGEST_SQL = 100_000


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One statement: `parameters` as `Reader.answer` takes them, `id` once it is to be computed."""

    sql: str
    as_of: str | None = None
    parameters: bytes = b""
    id: str = ""

    def __post_init__(self) -> None:
        if not 1 <= len(self.sql) <= LONGEST_SQL:
            why = f"it has {len(self.sql):,} characters, and from 1 to {LONGEST_SQL:,} are taken"
            raise UsageError("the statement was refused", why, "ask for less at once")

    def with_parameters(self, parameters: bytes) -> Asked:
        return replace(self, parameters=parameters)

    def at(self, as_of: str | None, id: str) -> Asked:
        """To be computed now; of a point in time that it was prepared for where none is named."""
        return replace(self, as_of=as_of or self.as_of, id=id)

    def to_bytes(self) -> bytes:
        """The handle."""
        parts = (self.sql, self.as_of, b64encode(self.parameters).decode(), self.id)
        return json.dumps(parts, ensure_ascii=False).encode()

    @classmethod
    def of_bytes(cls, handle: bytes) -> Asked:
        """UsageError for what was never a handle."""
        try:
            sql, as_of, parameters, id = json.loads(handle)
            if not all(isinstance(part, str) for part in (sql, parameters, id, as_of or "")):
                raise ValueError("its parts are of other types")
            return cls(sql=sql, as_of=as_of, parameters=b64decode(parameters, validate=True), id=id)
        except (ValueError, TypeError, RecursionError, Error) as error:
            raise UsageError(
                "the request was refused", "its handle is none that this server has given", "prepare it again"
            ) from error  # fmt: skip
