"""DAG `reload`: makes topics, schemas and contracts active as the project's files have them, all or none."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import dag

from twinlake.airflow.common import in_common
from twinlake.airflow.jobs import run_job
from twinlake.airflow.limits import RUN
from twinlake.airflow.names import BATCH_POOL, named
from twinlake.airflow.task import lake_task


@dag(
    dag_id=named("reload"),
    schedule=None,
    max_active_runs=1,
    dagrun_timeout=RUN,
    max_active_tasks=1,
    doc_md=__doc__,
    **in_common(BATCH_POOL, retry_delay=timedelta(seconds=15)),
)
def reload() -> None:
    @lake_task
    def make_active() -> dict[str, Any]:
        """Of the files beside the lake server. Nothing else stops; what is wrong is refused as a whole."""
        return run_job("reload", {})

    make_active()
