"""The DAGs, as makers that the files of a project's `dags/` call, and how their tasks ask the lake server."""

from __future__ import annotations

from twinlake.airflow.assets import asset_of
from twinlake.airflow.backfill import backfill_dag
from twinlake.airflow.batch import batch_dag
from twinlake.airflow.release import release_dag
from twinlake.airflow.single import backup_dag, maintain_dag, reload_dag, replay_dag, rollback_dag

__all__ = [
    "asset_of",
    "backfill_dag",
    "backup_dag",
    "batch_dag",
    "maintain_dag",
    "release_dag",
    "reload_dag",
    "replay_dag",
    "rollback_dag",
]
