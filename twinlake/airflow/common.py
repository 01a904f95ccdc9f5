"""What all DAGs have in common: names, pools, how long they may take, and how one is made.

Airflow knows a name once: the DAGs for an Airflow elsewhere may have a prefix. The pools are in pools.json,
for `airflow pools import`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, dag

from twinlake.base.errors import UsageError
from twinlake.base.times import parse_moment
from twinlake.config.sections import Limits
from twinlake.config.settings import Settings

_MARK = Path(__file__).parents[2] / ".twinlake.json"
WRITTEN: dict[str, Any] = json.loads(_MARK.read_text()) if _MARK.exists() else {}
"""What `twinlake dags` has written beside the library; where that is installed there is nothing."""
BATCH_POOL, RELEASE_POOL = "twinlake_batch", "twinlake_release"
"""Whatever waits in the first, a release or a rollback does not wait for it."""
PREFIX: str = WRITTEN.get("prefix", "")


def dag_of(tasks: Callable[[], None], pool: str, retry_delay: timedelta, **options: Any) -> DAG:
    """The DAG of these tasks, which is called like them, in the file that has called its maker.

    `pool` is that of all of its tasks. Unless `options` say more, people start it, one run and one task at a
    time.
    """
    usual = {"schedule": None, "max_active_runs": 1, "max_active_tasks": 1}
    tasks_of = dag(
        dag_id=f"{PREFIX}{tasks.__name__}",
        doc_md=cleandoc(tasks.__doc__ or ""),
        catchup=False,
        is_paused_upon_creation=False,
        tags=["twinlake"],
        default_args={
            "retries": 2,
            "retry_delay": retry_delay,
            "execution_timeout": timedelta(minutes=limits().airflow_task_minutes),
            "pool": pool,
        },
        **{**usual, **options},
    )
    found = tasks_of(tasks)()
    found.fileloc = sys._getframe(2).f_code.co_filename  # else this one, of which Airflow shows the code
    return found


def nightly(cron: str) -> dict[str, Any]:
    """The options of a DAG that runs at this time, in UTC.

    A night that was missed is made up for, but for those before `$TWINLAKE_AIRFLOW_SINCE`: a new lake has
    nothing to do then, and its cores are busy.
    """
    since = os.environ.get("TWINLAKE_AIRFLOW_SINCE", "2026-01-01T00:00:00Z")
    return {"schedule": cron, "start_date": parse_moment(since)}


@cache
def limits() -> Limits:
    """How long it all may take: `[limits]` of twinlake.toml, now or when `twinlake dags` read it.

    A job has no limit by the clock: its trigger cancels one in which nothing has gone on for too long.
    """
    if "limits" in WRITTEN:
        return Limits(**WRITTEN["limits"])
    try:
        return Settings.of(os.environ).values.limits
    except UsageError:  # `twinlake up` says what is wrong there, and starts no Airflow
        return Limits()


def run_limit() -> timedelta:
    """Of a DAG that builds nothing."""
    return timedelta(hours=limits().airflow_run_hours)
