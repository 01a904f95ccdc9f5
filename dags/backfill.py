"""The DAG `backfill`, which Airflow shows with what it does."""

from twinlake.airflow.backfill import backfill

backfill()
