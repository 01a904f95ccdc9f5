"""The DAG `rollback`: Airflow shows what it does."""

from twinlake.airflow import rollback_dag

rollback_dag()
