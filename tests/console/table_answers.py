"""A table as the lake server gives it, and rows as the SQL server does."""

from __future__ import annotations

from typing import Any

from tests.console import release_answers
from tests.unopened import certificate
from twinlake.server.table_facts import TableFacts

ORDERS = {"owner": "orders", "column": "amount"}
CERTIFICATES = [certificate("sales", "v-1"), certificate("sales", "v-1", equal=False)]
VERSION = {
    "state": "living", "created_at": "2026-01-31T10:00:00Z", "git_commit": None, "retired_at": None,
    "reads": {}, "contracts": {"orders": "1.0.0"},
}  # fmt: skip


def table(**changed: Any) -> dict[str, Any]:
    """Sales by region and minute, live."""
    usual: dict[str, Any] = {
        "name": "sales", "live": "v-1", "purpose": "Sales of each region per minute.",
        "row": "One row per region and minute.", "kind": "aggregate", "keys": ("region", "window_start"),
        "stored": True, "windows": True, "late": True, "topics": ("orders",), "reads": (),
        "read_by": ("by_day",),
        "columns": [
            {"name": "sales", "meaning": "without cancelled ones", "key": False, "type": "decimal(38,2)",
             "made_of": [ORDERS], "used_by": [{"owner": "by_day", "column": "total"}]},
        ],
        "decided_by": [{"owner": "orders", "column": "status"}],
        "definition": {"kind": "aggregate", "where": "status <> 'cancelled'"},
        "versions": [
            {"name": "v-1", "releases": [4], **VERSION}, {"name": "v-0", "releases": [3], **VERSION},
        ],
        "certificates": [one.summary() for one in CERTIFICATES], "releases": release_answers.releases(),
    }  # fmt: skip
    return TableFacts(**{**usual, **changed}).to_json()


ROWS = {
    "columns": [{"name": name, "type": "string"} for name in ("region", "window_start", "sales")],
    "rows": [
        {"region": "north & south", "window_start": "2026-01-31T11:00:00Z", "sales": "12.50"},
        {"region": None, "window_start": "2026-01-31T11:01:00Z", "sales": "1.00"},
    ],
    "truncated": False, "release": 4, "stalled": [], "no_report": None,
}  # fmt: skip
RECORD = {"topic": "orders", "epoch": 0, "partition": 1, "offset": 17, "batch": 3, "id": "e17",
          "timestamp": "2026-01-31T11:00:05Z"}  # fmt: skip
WHY = {
    "table": "sales", "version": "v-1", "release": 4, "position": {"orders": 7}, "computed": [],
    "row": ROWS["rows"][0], "decided": None, "records": [RECORD],  # type: ignore[index]
    "partitions": [
        {"topic": "orders", "through": ["sales < orders"], "epoch": 0, "partition": 1, "records": 12,
         "first_offset": 10, "last_offset": 40, "batches": 2, "first_batch": 3, "last_batch": 4,
         "first_appended": "2026-01-31T11:00:00Z", "last_appended": "2026-01-31T11:00:59Z"},
    ],
}  # fmt: skip
