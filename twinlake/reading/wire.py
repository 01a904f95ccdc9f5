"""What the SQL server and its clients agree on beside the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

HEADER = "x-twinlake-query"
"""Every request has it: a page of somebody else's that a browser shows cannot send it."""
ARROW = "application/vnd.apache.arrow.stream"
"""Who accepts this gets the rows as an Arrow stream, with what is known of them in its schema's metadata."""
METADATA = "twinlake"
"""The key of what is known of the rows, as JSON, in that metadata."""
SLOW_S = 30.0
"""A client that takes no piece of its answer for so long is cut off."""
EXPORT_SLOW_S = 300.0
"""The same for an answer of /export: it waits in files, for one who works on each batch."""
WAY, PLAN, SQL = "X-Twinlake-Way", "plan", "sql"
"""A header that says whether a look-up or a statement was answered by a plan that was there."""
Key = Mapping[str, str | None]
"""By column its value, None for NULL."""


def described(schema: pa.Schema, facts: Mapping[str, Any]) -> pa.Schema:
    """The schema with what is known of the rows."""
    return schema.with_metadata({METADATA: json.dumps(facts)})


def facts_of(schema: pa.Schema) -> dict[str, Any]:
    """What `described` has put there."""
    facts: dict[str, Any] = json.loads(schema.metadata[METADATA.encode()])
    return facts


def key_of(given: Iterable[str]) -> dict[str, str | None]:
    """The key columns of rows, as they are given: `name=value`, or the name alone for NULL."""
    parts = [one.partition("=") for one in given]
    if len({name for name, _, _ in parts}) < len(parts):
        raise UsageError("a key column is given twice", ", ".join(given), "give each of them once")
    return {name: value if parted else None for name, parted, value in parts}


def text_of(key: Key) -> str:
    return ", ".join(f"{name} is NULL" if value is None else f"{name}={value}" for name, value in key.items())
