"""Follow: whether the SQL server serves a release that was just committed."""

from __future__ import annotations

import httpx

from twinlake.base.errors import TimedOutError, UnreachableError
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Settings

FOLLOW_S = 15.0


def follow_problem(settings: Settings, number: int, limit_s: float = FOLLOW_S) -> str | None:
    """None once the SQL server serves the release or a later one, else why it is not known to."""
    try:
        url = settings.services().sql_url
    except UnreachableError as error:
        return str(error)
    if not url:
        return "the SQL server is not running; it follows when it starts"
    said = "it has not answered yet"

    def asked() -> bool | None:
        nonlocal said
        try:
            status = httpx.get(f"{url}/status", timeout=2, trust_env=False).json()
        except (httpx.HTTPError, ValueError) as error:
            said = f"it does not answer: {error or type(error).__name__}"
            return False if isinstance(error, httpx.ConnectError) else None
        said = f"it serves release {status.get('release')}: {status.get('error') or 'still following'}"
        return True if (status.get("release") or 0) >= number else None

    try:
        if wait_for(f"the SQL server to follow to release {number}", asked, limit_s, every_s=0.05):
            return None
    except TimedOutError:
        pass
    return f"the SQL server has not followed to release {number}: {said}; it follows by itself when it can"
