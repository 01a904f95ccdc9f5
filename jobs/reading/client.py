"""Client of the SQL server's HTTP door: one statement, its rows. Needs no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from jobs.errors import TwinlakeError, UnreachableError, UsageError
from jobs.settings import Services

MORE_S = 30.0
"""So much longer than the server gives a statement is waited for its answer."""


ARROW = "application/vnd.apache.arrow.stream"


def ask(services: Services, sql: str, limit: int = 10_000, as_of: str | None = None) -> dict[str, Any]:
    """The SQL server's answer: columns, rows, truncated, release; `as_of` too where that is asked."""
    found: dict[str, Any] = _post(services, "query", _statement(sql, limit, as_of)).json()
    return found


def ask_arrow(services: Services, sql: str, limit: int, as_of: str | None = None) -> bytes:
    """The same rows as an Arrow stream; what is told of them is in its schema's metadata."""
    return _post(services, "query", _statement(sql, limit, as_of), ARROW).content


def ask_why(
    services: Services, table: str, key: Mapping[str, str | None], as_of: str | None = None
) -> dict[str, Any]:
    """The row with this key, and the records behind it."""
    asked = {"table": table, "key": dict(key), "as_of": as_of}
    found: dict[str, Any] = _post(services, "explain", asked).json()
    return found


def _statement(sql: str, limit: int, as_of: str | None) -> dict[str, Any]:
    return {"sql": sql, "limit": limit, **({} if as_of is None else {"as_of": as_of})}


def _post(
    services: Services, door: str, asked: Mapping[str, Any], accepts: str = "application/json"
) -> httpx.Response:
    url = services.sql_url
    if not url:
        raise UnreachableError(
            "the SQL server is not running", "it has no address", "start it with `twinlake up`"
        )
    try:
        answer = httpx.post(
            f"{url}/{door}", json=asked, headers={"X-Twinlake-Query": "1", "Accept": accepts},
            auth=services.reader,
            timeout=httpx.Timeout(services.query_seconds + MORE_S, connect=5), trust_env=False,
        )  # fmt: skip
    except httpx.HTTPError as error:
        raise UnreachableError(
            "the SQL server does not answer", f"{url}: {error or type(error).__name__}",
            "see `twinlake status` and `twinlake logs sql`",
        ) from error  # fmt: skip
    if answer.is_success:
        return answer
    try:
        told = answer.json()
    except ValueError:
        told = {}
    kind = UsageError if answer.status_code < 500 else TwinlakeError
    raise kind(told.get("what") or f"the SQL server answered {answer.status_code}",
               told.get("why", answer.text[:500]), told.get("remedy", ""))  # fmt: skip
