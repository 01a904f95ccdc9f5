"""The guards of the SQL server fail closed: with another Spark than they know they refuse to start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from pyspark.sql import SparkSession

from tests.broker import free_port
from tests.project import PROJECT
from twinlake.base.errors import TwinlakeError
from twinlake.base.passwords import hashed
from twinlake.config.settings import Settings

TESTED = "Its guards were tested with Spark 4.1.1 and Delta 4.3.1"


@pytest.fixture
def java(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.twinlake.reading


def test_the_versions_of_this_project_are_tested_ones(java: Any) -> None:
    from importlib.metadata import version

    java.Guards.checkVersions(version("pyspark"), version("delta-spark"))


@pytest.mark.parametrize(("spark_version", "delta"), [("4.1.2", "4.3.1"), ("4.1.1", "4.4.0"), ("", "")])
def test_a_version_that_was_not_tested_is_refused_with_those_that_were(
    java: Any, spark_version: str, delta: str
) -> None:
    with pytest.raises(Exception, match=TESTED) as refused:
        java.Guards.checkVersions(spark_version, delta)
    assert f"this is Spark {spark_version} with Delta {delta}" in str(refused.value)


@pytest.mark.faults
def test_a_server_with_another_delta_ends_before_it_listens(tmp_path: Path) -> None:
    """Its jar says so, as one does that somebody has put beside ours."""
    jars = tmp_path / "project" / ".jars"
    (jars / "spark").mkdir(parents=True)
    (jars / "classes").symlink_to(Settings(home=tmp_path).jars / "classes")
    for jar in (Settings(home=tmp_path).jars / "spark").glob("*.jar"):
        if not jar.name.startswith("delta-spark"):
            (jars / "spark" / jar.name).symlink_to(jar)
            continue
        with ZipFile(jar) as ours, ZipFile(jars / "spark" / jar.name, "w") as another:
            for one in ours.namelist():
                held = ours.read(one)
                planted = one.startswith("io/delta/package")
                another.writestr(one, held.replace(b"4.3.1", b"4.9.9") if planted else held)
    (tmp_path / "password").write_text(f"{hashed('analyst', 'for-tests-only').strip()}:analyst\n")
    port, jdbc_port, flight_port = free_port(), free_port(), free_port()

    done = subprocess.run(
        [sys.executable, "-m", "twinlake.reading", "--home", str(tmp_path), "--port", str(port),
         "--jdbc-port", str(jdbc_port), "--flight-port", str(flight_port),
         "--scratch", str(tmp_path / "scratch"), "--password-file", str(tmp_path / "password"),
         "--jars", str(jars)],
        cwd=PROJECT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert done.returncode == TwinlakeError.exit_code, done.stderr
    assert "the SQL server was not started, because its guards do not fit this Spark" in done.stderr
    assert "this is Spark 4.1.1 with Delta 4.9.9" in done.stderr and TESTED in done.stderr
    assert "Do: install the versions of constraints.txt" in done.stderr


def test_a_class_that_spark_does_not_have_is_refused_by_its_name(spark: SparkSession, java: Any) -> None:
    gateway: Any = spark.sparkContext._gateway
    names = gateway.new_array(gateway.jvm.String, 2)
    names[0], names[1] = "Aggregate", "Aggregated"

    with pytest.raises(Exception, match="it has no class Aggregated"):
        java.Guards.classes(names)


def test_a_method_that_hive_does_not_have_is_refused_by_its_name(spark: SparkSession, java: Any) -> None:
    jvm: Any = spark._jvm
    session = jvm.java.lang.Class.forName("org.apache.hive.service.cli.session.HiveSessionImpl")

    assert java.Guards.method(session, "setVariable") == "setVariable"
    with pytest.raises(Exception, match="HiveSessionImpl has no method setVariables"):
        java.Guards.method(session, "setVariables")


def test_a_function_that_is_not_known_is_refused_by_its_name(spark: SparkSession, java: Any) -> None:
    readers = spark.newSession()
    readers.udf.register("planted", lambda: 1)

    with pytest.raises(Exception, match=r"readers would have the functions .*java_method, planted"):
        java.Functions.check(readers._jsparkSession)


def test_a_canary_that_is_answered_is_told(spark: SparkSession, java: Any) -> None:
    with pytest.raises(Exception, match="it did not refuse SELECT java_method"):
        java.Canaries.checkRefused(
            spark.newSession()._jsparkSession, "SELECT java_method('java.lang.Math', 'abs', 1)"
        )
