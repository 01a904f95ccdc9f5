"""Airflow for tests: a home of its own, no database, and the DAG folder importable as Airflow makes it."""

from __future__ import annotations

import os
import sys
import tempfile

import pytest

from tests.project import PROJECT

HOME = tempfile.TemporaryDirectory(prefix="twinlake-airflow-")  # removed when the test run ends
os.environ["AIRFLOW_HOME"] = HOME.name
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = str(PROJECT / "dags")
os.environ["AIRFLOW__CORE__UNIT_TEST_MODE"] = "False"
sys.path.insert(0, str(PROJECT / "dags"))


@pytest.fixture(scope="session")
def bag():
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=str(PROJECT / "dags"))
