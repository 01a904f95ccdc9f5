"""Figures in which everything is well, for tests that change one thing of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from twinlake.alarms.conditions import Disk, Figures

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
PART: dict[str, Any] = {
    "part": "lake", "service": "lake", "state": "ready", "answers": True, "answer": "ready", "restarts": 0,
    "since": "2026-01-31T11:00:00+00:00", "note": "", "error": None, "pid": 1, "given": False,
}  # fmt: skip
TOPIC: dict[str, Any] = {
    "name": "orders", "state": "running", "error": None, "paused": None, "warnings": [], "unreadable": [],
    "lag_records": 0, "lag_seconds": 0.0, "newest": "2026-01-31T11:59:58Z", "counts": {"valid": 90},
}  # fmt: skip
VERSION: dict[str, Any] = {
    "table": "sales", "version": "v-1", "position": {"orders": 7}, "lag_records": 0, "lag_seconds": 0.0,
    "stalled": False, "error": None, "paused": None,
}  # fmt: skip
CERTIFICATE: dict[str, Any] = {
    "table": "sales", "version": "v-1", "equal": True, "created_at": "2026-01-31T11:58:00Z",
    "raises": None, "proof": "", "disputed": False,
}  # fmt: skip
STATUS: dict[str, Any] = {
    "ready": True, "topics": [TOPIC], "versions": [VERSION], "certificates": [CERTIFICATE],
    "changelogs": [], "damaged": [],
    "release": {"number": 3, "created_at": "2026-01-30T12:00:00Z", "tables": {"sales": "v-1"}},
    "spark": None, "waiting": None,
    "backup": {"newest": "2026-01-31T02:30:00Z", "since": None, "failed": None},
}  # fmt: skip
WELL = Figures(
    parts=[PART], supervisor=None, disk=Disk(free=50 << 30, total=100 << 30), status=STATUS, restarts={},
    refused={},
)  # fmt: skip


def of_status(**changed: Any) -> Figures:
    """Everything is well but for this of the lake server's status."""
    return replace(WELL, status={**STATUS, **changed})
