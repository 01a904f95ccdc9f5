"""Page: what a browser is shown at a table's changes: the table, as it is at every moment.

It is the page that docs/changes.md shows. It is of the SQL server's own origin, so the browser sends the
login that it has asked for; what it runs is named by its hash, and it can talk to nobody else.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from fastapi.responses import HTMLResponse

FILE = Path(__file__).with_name("page.html")


def shown() -> HTMLResponse:
    """The same for every table: it knows by its address which."""
    text, policy = _known()
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "Vary": "Accept",
    }
    return HTMLResponse(text, headers=headers)


@cache
def _known() -> tuple[str, str]:
    """The page, and what it may do."""
    text = FILE.read_text(encoding="utf-8")
    script, style = (_hash(text, tag) for tag in ("script", "style"))
    allowed = f"script-src {script}; style-src {style}; connect-src 'self'"
    return text, f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def _hash(text: str, tag: str) -> str:
    (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
    return f"'sha256-{digest}'"
