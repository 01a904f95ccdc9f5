"""The DAG `batch`: Airflow shows what it does."""

from twinlake.airflow import batch_dag

batch_dag()
