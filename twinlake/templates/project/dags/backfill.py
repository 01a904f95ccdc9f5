"""The DAG `backfill`: Airflow shows what it does."""

from twinlake.airflow import backfill_dag

backfill_dag()
