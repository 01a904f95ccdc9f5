"""The DAG `maintain`: Airflow shows what it does."""

from twinlake.airflow import maintain_dag

maintain_dag()
