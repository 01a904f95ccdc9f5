"""The session: who may speak to it; what Spark raises reaches whoever asked, as it is and once."""

from __future__ import annotations

import logging.config
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.errors import AnalysisException, ArithmeticException
from pyspark.sql import SparkSession

from tests.knocking import OF_JAVA, OF_PYTHON, knock
from twinlake.base.errors import UnreachableError
from twinlake.config.library import FETCH_JARS
from twinlake.config.settings import Settings
from twinlake.spark.session import class_path


@pytest.fixture
def configured() -> Iterator[None]:
    """As a library does that sets up its logs: what was disabled before is not any more."""
    level = logging.root.level
    logging.config.dictConfig({"version": 1, "disable_existing_loggers": False})
    yield
    logging.root.setLevel(level)


def test_the_driver_s_ports_answer_nobody_who_has_not_its_secret(spark: SparkSession) -> None:
    """Which is made in memory: it is in no setting, on no command line and in no environment."""
    jvm = psutil.Process(spark.sparkContext._gateway.proc.pid)
    ports = [one.laddr.port for one in jvm.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    asked = [(port, name, words) for port in ports for name, words in OF_JAVA.items()]

    answers = knock([(port, words.says) for port, _, words in asked])

    refusals = [
        name for (_, name, words), answer in zip(asked, answers, strict=True) if words.is_refused(answer)
    ]
    assert sorted(refusals) == ["Spark", "Spark", "py4j of Spark"], answers
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.authenticate") == "true" and not conf.contains("spark.authenticate.secret")
    said = " ".join((*jvm.cmdline(), *jvm.environ().values()))
    assert spark.sparkContext._gateway.java_parameters.auth_token not in said


def test_python_s_functions_are_called_by_its_own_java_alone(spark: SparkSession, tmp_path: Path) -> None:
    batches = []
    spark.range(10).selectExpr("cast(id AS string)").write.text(str(tmp_path / "texts"))
    source = spark.readStream.format("text").load(str(tmp_path / "texts"))
    stream = source.writeStream.option("checkpointLocation", str(tmp_path / "stream"))
    stream = stream.foreachBatch(lambda rows, number: batches.append(rows.count()))
    stream.trigger(availableNow=True).start().awaitTermination(120)
    gateway: Any = spark.sparkContext._gateway
    (words,) = OF_PYTHON.values()

    (answer,) = knock([(gateway._callback_server.port, words.says)])

    assert batches == [10]
    assert words.is_refused(answer), answer


def test_an_error_of_spark_is_raised_as_it_is_and_not_logged_as_well(
    spark: SparkSession, configured: None, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        spark.range(1).selectExpr("1 / id").collect()
    with pytest.raises(AnalysisException, match="nothing"):
        spark.sql("SELECT nothing FROM range(1)")

    said = capfd.readouterr()
    assert "DIVIDE_BY_ZERO" not in said.out + said.err and "nothing" not in said.out + said.err


def test_a_stack_that_overflows_in_a_task_ends_its_job_alone(spark: SparkSession) -> None:
    rows = spark.range(0, 8, 1, 8).where("concat(repeat('ab', 500000), id) RLIKE '(a|b)*c'")

    with pytest.raises(Exception, match="StackOverflowError"):
        rows.count()

    assert spark.range(3).count() == 3


def test_jars_that_were_not_fetched_are_named_with_the_way_to_fetch_them(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, jars=tmp_path / "jars")

    with pytest.raises(UnreachableError, match="there are no Spark jars") as raised:
        class_path(settings)
    assert raised.value.remedy == FETCH_JARS

    (settings.jars / "spark").mkdir(parents=True)
    (settings.jars / "spark" / "one.jar").touch()
    with pytest.raises(UnreachableError, match="there is no") as raised:
        class_path(settings)
    assert raised.value.remedy == FETCH_JARS
