"""What the DAGs and their pools are called.

Airflow knows a name once: the DAGs for an Airflow elsewhere may have a prefix. The pools are in pools.json,
for `airflow pools import`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[2] / ".twinlake.json"
WRITTEN: dict[str, Any] = json.loads(_FOLDER.read_text()) if _FOLDER.exists() else {}
"""What `twinlake dags` has written beside the DAGs; this project's own folder has nothing."""
BATCH_POOL, RELEASE_POOL = "twinlake_batch", "twinlake_release"
"""Whatever waits in the first, a release or a rollback does not wait for it."""
PREFIX: str = WRITTEN.get("prefix", "")


def named(dag: str) -> str:
    """Its name in this Airflow."""
    return f"{PREFIX}{dag}"
