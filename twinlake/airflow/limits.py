"""How long what these DAGs do may take: `[limits]` of twinlake.toml, now or when `twinlake dags` read it.

A job has no limit by the clock: `lake_trigger.py` cancels one in which nothing has gone on for too long.
"""

from __future__ import annotations

import os
from datetime import timedelta

from twinlake.airflow.names import WRITTEN
from twinlake.base.errors import UsageError
from twinlake.config.sections import Limits
from twinlake.config.settings import Settings


def _limits() -> Limits:
    if "limits" in WRITTEN:
        return Limits(**WRITTEN["limits"])
    try:
        return Settings.of(os.environ).values.limits
    except UsageError:  # `twinlake up` says what is wrong there, and starts no Airflow
        return Limits()


_LIMITS = _limits()
TASK = timedelta(minutes=_LIMITS.airflow_task_minutes)
"""A task on a worker; while it waits for its job it is on none."""
RUN = timedelta(hours=_LIMITS.airflow_run_hours)
"""A run of a DAG that builds nothing."""
APPROVAL = timedelta(hours=_LIMITS.approval_hours)
