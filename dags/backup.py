"""The DAG `backup`: Airflow shows what it does."""

from twinlake.airflow import backup_dag

backup_dag()
