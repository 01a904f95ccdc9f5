"""Client of what the SQL server answers without a statement: queries that run, names, what a plan changes.

Needs no Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx

from twinlake.base.errors import NotFoundError, TwinlakeError, UnreachableError, error_of
from twinlake.config.settings import Services
from twinlake.reading import wire
from twinlake.reading.server_address import trusted

LONGEST_S = 30.0
_LOGS = "see `twinlake status` and `twinlake logs sql`"


def running(services: Services) -> list[dict[str, Any]]:
    """What `sql_user` sees, the oldest first; see `reading/running.py`."""
    found: list[dict[str, Any]] = _json(services, "GET", "/queries")
    return found


def names(services: Services) -> dict[str, Any]:
    """The schemas, tables and columns that `sql_user` may read; see `Reader.names`."""
    found: dict[str, Any] = _json(services, "GET", "/names")
    return found


def report(services: Services, plan: str) -> str:
    """The page with what a plan changes, its differences and its gate; NotFoundError before it is made."""
    return _asked(services, "GET", f"/reports/{plan}").text


def comparison(services: Services, plan: str) -> list[dict[str, Any]]:
    """By table what a plan changes, over time, with the rows that differ most; see `releases/shown.py`."""
    found: list[dict[str, Any]] = _json(services, "GET", f"/comparisons/{plan}")
    return found


def gate(services: Services, plan: str) -> dict[str, Any]:
    """What a plan's gate said last, with the rows behind its checks; see `releases/gate_checks.py`."""
    found: dict[str, Any] = _json(services, "GET", f"/gates/{plan}")
    return found


def find(services: Services, id: str) -> dict[str, Any]:
    """One of them; NotFoundError where it has ended, or there was none."""
    known = (one for one in running(services) if one["id"] == id)
    if (found := next(known, None)) is None:
        raise _gone(id)
    return found


def end(services: Services, id: str) -> dict[str, Any]:
    """Ends it, and returns it as it was; one of somebody else's has to be in the audit log by then."""
    if not re.fullmatch(r"[0-9a-f]+", id):  # nothing else is reached by a path
        raise _gone(id)
    found: dict[str, Any] = _json(services, "POST", f"/queries/{id}/cancel")
    return found


def cancel(
    services: Services, query: dict[str, Any], write_down: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    """Ends it; `write_down` has the lake server put it into the audit log before, where it is somebody
    else's."""
    if query["user"] != services.sql_user:
        write_down(query)
    return end(services, query["id"])


def _json(services: Services, method: str, path: str) -> Any:
    return _parsed(_asked(services, method, path))


def _asked(services: Services, method: str, path: str) -> httpx.Response:
    if not services.sql_url:
        raise UnreachableError(
            "the SQL server is not running", "it has no address", "start it with `twinlake up`"
        )
    try:
        answer = httpx.request(
            method, services.sql_url + path, auth=services.reader, headers={wire.HEADER: "1"},
            timeout=LONGEST_S, trust_env=False, verify=trusted(services.sql_ca_file),
        )  # fmt: skip
    except httpx.HTTPError as error:
        why = f"{services.sql_url}: {error or type(error).__name__}"
        raise UnreachableError("the SQL server does not answer", why, _LOGS) from error
    if not answer.is_success:
        found = _parsed(answer)
        raise error_of(found if isinstance(found, dict) else {"what": f"it answered {answer.status_code}"})
    return answer


def _parsed(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError as error:
        what = f"the SQL server answered {answer.status_code}"
        raise TwinlakeError(what, answer.text[:300], _LOGS) from error


def _gone(id: str) -> NotFoundError:
    return NotFoundError(
        f"no query {id!r} is running", "it has ended, or there was none", "see `twinlake queries`"
    )
