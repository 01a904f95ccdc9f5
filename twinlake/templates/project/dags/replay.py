"""The DAG `replay`: Airflow shows what it does."""

from twinlake.airflow import replay_dag

replay_dag()
