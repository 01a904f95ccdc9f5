"""The DAG `release`: Airflow shows what it does."""

from twinlake.airflow import release_dag

release_dag()
