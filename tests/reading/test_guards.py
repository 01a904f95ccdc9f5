"""The guards of the SQL server fail closed: with another Spark than they know they refuse to start."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

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
