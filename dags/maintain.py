"""The DAG `maintain`, which Airflow shows with what it does."""

from twinlake.airflow.maintain import maintain

maintain()
