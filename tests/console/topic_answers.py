"""A topic as the lake server gives it, of the project's own files, and its quarantine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.project import OURS
from twinlake.server.topic_facts import TopicFacts, TopicFiles
from twinlake.topics.topic import load_topic

ORDERS = load_topic("orders", OURS)
ACTIVE = TopicFiles(name="orders", state="active", contract="1.0.0", written="1.0.0", hash="a")
EDITED = replace(ACTIVE, state="edited", written="1.1.0", hash="b")
NEW = TopicFiles(name="returns", state="new", contract=None, written="1.0.0", hash="c")
WRONG = TopicFiles(name="visits", state="wrong", contract="1.0.0", written=None, why="visits.yaml: torn")


def topic(**changed: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "name": "orders", "files": ACTIVE, "purpose": "Order events of the shop.",
        "contract": ORDERS.contract.to_json(),
        "columns": [
            {"name": "amount", "type": "decimal(12,2)", "meaning": "in euros", "rules": ["at least 0"],
             "used_by": [{"owner": "sales", "column": "sales"}]},
        ],
        "schemas": [
            {"number": 2, "file": "orders.v2.avsc", "fingerprint": "f",
             "fields": [{"name": "amount", "type": "decimal(12,2)", "nullable": True}]},
        ],
        "views": {name: f"orders_{name}" for name in ("valid", "quarantine", "replayed")},
        "read_by": ("sales",),
        "certificate": {"topic": "orders", "position": 7, "created_at": "2026-01-31T11:58:00Z",
                        "words": "equal in 5,000 records, at batch 7", "disputed": False},
    }  # fmt: skip
    return TopicFacts(**{**usual, **changed}).to_json()


AT = "2026-01-31T11:00:00Z"
QUARANTINE = {
    "topic": "orders", "records": {"invalid": 1_200, "too_late": 2},
    "groups": [
        {"verdict": "invalid", "reason": "not_allowed:status", "contract": "1.0.0", "records": 1_200,
         "first": AT, "last": AT,
         "samples": [
             {"epoch": 0, "partition": 1, "offset": 17, "timestamp": AT, "key": "6b",
              "value": "3c696d673e00"},
         ]},
    ],
    "replayed": [
        {"first_verdict": "invalid", "first_reasons": ["empty:region"], "first_contract": "1.0.0",
         "verdict": "valid", "reasons": [], "contract": "1.1.0", "records": 3, "first_batch": 8,
         "last_batch": 9},
    ],
}  # fmt: skip
