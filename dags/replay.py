"""The DAG `replay`, which Airflow shows with what it does."""

from twinlake.airflow.replay import replay

replay()
