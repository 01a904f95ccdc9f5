"""The DAG `rollback`, which Airflow shows with what it does."""

from twinlake.airflow.rollback import rollback

rollback()
