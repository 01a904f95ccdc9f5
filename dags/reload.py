"""The DAG `reload`, which Airflow shows with what it does."""

from twinlake.airflow.reload import reload

reload()
