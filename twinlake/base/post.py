"""Post: one message to somebody else's server, in bounded time, whatever that server does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx

from twinlake.base.errors import TwinlakeError, UnreachableError

TIMEOUT_S = 10.0
WHOLE_S = 30.0
"""So long one message may take, however many bytes come meanwhile: others wait for it. To look up a name may
take longer, as long as the system lets it."""


def post(url: str, body: bytes, headers: Mapping[str, str], who: str) -> None:
    """Returns once it is accepted by a status of success: by this address, nobody is followed elsewhere.

    An error says that `who` at the address's host did not; the rest of an address is often a secret.
    """
    host = httpx.URL(url).host
    try:
        status = asyncio.run(asyncio.wait_for(_posted(url, body, headers), WHOLE_S))
    except (httpx.HTTPError, TimeoutError) as error:
        raise UnreachableError(f"{who} at {host} does not answer", type(error).__name__) from None
    if not httpx.codes.is_success(status):
        raise TwinlakeError(f"{who} at {host} answered {status}")


async def _posted(url: str, body: bytes, headers: Mapping[str, str]) -> int:
    """The status. What comes after it is not read: it may be endless."""
    async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client:
        async with client.stream("POST", url, content=body, headers=dict(headers)) as answer:
            return answer.status_code
