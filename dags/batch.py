"""The DAG `batch`, which Airflow shows with what it does."""

from twinlake.airflow.batch import batch

batch()
