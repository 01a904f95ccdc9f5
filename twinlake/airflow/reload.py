"""The maker of the DAG `reload`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG

from twinlake.airflow.common import BATCH_POOL, dag_of, run_limit
from twinlake.airflow.jobs import run_job
from twinlake.airflow.task import lake_task


def reload() -> None:
    """DAG `reload`: makes topics, schemas and contracts active as the project's files have them, all or
    none.
    """

    @lake_task
    def make_active() -> dict[str, Any]:
        """Of the files beside the lake server. Nothing else stops; what is wrong is refused as a whole."""
        return run_job("reload", {})

    make_active()


def reload_dag() -> DAG:
    """`reload`, as a DAG of the file that calls this."""
    return dag_of(
        reload,
        BATCH_POOL,
        retry_delay=timedelta(seconds=15),
        schedule=None,
        max_active_runs=1,
        dagrun_timeout=run_limit(),
        max_active_tasks=1,
    )
