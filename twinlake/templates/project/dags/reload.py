"""The DAG `reload`: Airflow shows what it does."""

from twinlake.airflow import reload_dag

reload_dag()
