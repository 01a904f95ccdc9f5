"""What all DAGs have in common, and what their forms ask alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Param

from twinlake.airflow.limits import TASK


def in_common(pool: str, retry_delay: timedelta) -> dict[str, Any]:
    """For `@dag`: `pool` is that of all of its tasks."""
    return {
        "catchup": False,
        "is_paused_upon_creation": False,
        "tags": ["twinlake"],
        "default_args": {
            "retries": 2,
            "retry_delay": retry_delay,
            "execution_timeout": TASK,
            "pool": pool,
        },
    }


def reason_field(title: str, description: str) -> Param:
    """Somebody's words in the form; they may be left out."""
    return Param(None, type=["null", "string"], maxLength=500, title=title, description=description)
