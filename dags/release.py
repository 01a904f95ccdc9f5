"""The DAG `release`, which Airflow shows with what it does."""

from twinlake.airflow.release import release

release()
