"""What a cluster's driver is told, what nobody may set, and what is said of a master that cannot be used."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from pathlib import Path

import pytest

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.config.login import Kafka
from twinlake.config.sections import Spark
from twinlake.config.values import Values
from twinlake.spark import cluster as spark_cluster
from twinlake.spark.cluster import (
    GROUP_BYTES,
    SECRET_FILE,
    check_master,
    cluster_conf,
    merged,
    refuse,
    refuse_open,
    secrets,
)

LAKE = Path("/srv/lake")
JARS = (Path("/jars/one.jar"), Path("/jars/two.jar"))
HERE = Spark(master="spark://127.0.0.1:7077")


def of(given: Spark, kafka: Kafka = Kafka()) -> str:
    return check_master(Values(spark=given, kafka=kafka))


@pytest.fixture
def listening() -> Iterator[int]:
    """A port that somebody listens on, as a master does."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        yield door.getsockname()[1]


@pytest.fixture
def telling(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The master's other door, which tells the version in the list."""
    told: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"serverSparkVersion": told[0]} if told else ["nothing"]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    monkeypatch.setattr(spark_cluster, "REST_PORT", server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield told
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "name",
    [
        "spark.master", "spark.sql.extensions", "spark.sql.session.timeZone", "spark.sql.ansi.enabled",
        "spark.sql.legacy.timeParserPolicy", "spark.sql.files.ignoreMissingFiles", "spark.sql.catalog.other",
        "spark.delta.logStore.file.impl", "spark.databricks.delta.commitValidation.enabled",
        "spark.hadoop.fs.file.impl", "spark.scheduler.mode", "spark.driver.host", "spark.local.dir",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version", "spark.authenticate.secret",
        "spark.twinlake.lake", "spark.twinlake.other",
    ],
)  # fmt: skip
def test_what_answers_depend_on_cannot_be_set(name: str) -> None:
    with pytest.raises(UsageError, match=f"may not set {name}") as refused:
        refuse({"spark.executor.memory": "4g", name: "other"})
    assert refused.value.why and refused.value.remedy


@pytest.mark.parametrize(
    "name",
    [
        "spark.executor.memory", "spark.cores.max", "spark.sql.shuffle.partitions", "spark.driver.port",
        "spark.sql.adaptive.enabled", "spark.driver.bindAddress", "spark.kubernetes.container.image",
        "spark.hadoop.fs.s3a.endpoint", "spark.authenticate.secret.file", "spark.eventLog.enabled",
    ],
)  # fmt: skip
def test_what_decides_only_where_and_how_fast_can_be_set(name: str) -> None:
    refuse({name: "other"})


@pytest.mark.parametrize("size", ["0", "64m", "64MB", "1g", "4096"])
def test_how_much_is_grouped_by_hash_can_be_set(size: str) -> None:
    refuse({GROUP_BYTES: size})


@pytest.mark.parametrize("size", ["", "much", "-1", "64 m", "1.5g"])
def test_a_size_of_groups_that_is_none_is_refused_before_anything_starts(size: str) -> None:
    with pytest.raises(UsageError, match=f"may not set {GROUP_BYTES}") as refused:
        refuse({GROUP_BYTES: size})
    assert refused.value.why == f"{size!r} is no size"


def test_executors_get_the_jars_unless_they_have_their_own() -> None:
    sent = cluster_conf(HERE, JARS, "-Dlimit=1", LAKE)
    own = cluster_conf(
        Spark(master=HERE.master, conf={"spark.executor.extraClassPath": "/opt/jars/*"}),
        JARS,
        "-Dlimit=1",
        LAKE,
    )

    assert sent["spark.jars"] == "/jars/one.jar,/jars/two.jar"
    assert "spark.jars" not in own
    assert sent["spark.executor.extraJavaOptions"].startswith("-Dlimit=1 -Duser.timezone=UTC")


def test_a_driver_that_others_reach_asks_who_they_are() -> None:
    open_to_all = Spark(master=HERE.master, advertised_host="10.0.0.7")
    asking = Spark(
        master=HERE.master, advertised_host="10.0.0.7",
        conf={"spark.authenticate": "true", "spark.driver.bindAddress": "0.0.0.0"},
    )  # fmt: skip

    with pytest.raises(UsageError, match=r"reached by 10\.0\.0\.7, and nothing asks") as refused:
        refuse_open(open_to_all)

    assert SECRET_FILE in refused.value.remedy
    refuse_open(asking)
    made = cluster_conf(asking, JARS, "", LAKE)
    assert (made["spark.driver.host"], made["spark.driver.bindAddress"]) == ("10.0.0.7", "0.0.0.0")
    assert cluster_conf(HERE, JARS, "", LAKE)["spark.driver.bindAddress"] == "127.0.0.1"


def test_a_driver_without_a_cluster_always_asks_who_comes() -> None:
    with pytest.raises(UsageError, match=r"may not set spark\.authenticate to false") as refused:
        refuse_open(Spark(conf={"spark.authenticate": "false"}))

    assert "user of this machine" in refused.value.why
    refuse_open(Spark(conf={"spark.authenticate": "true"}))


def test_the_operator_s_word_counts_and_of_lists_both() -> None:
    ours = {"spark.jars": "a.jar", "spark.executor.extraJavaOptions": "-Da=1", "spark.ui.enabled": "false"}
    theirs = {
        "spark.jars": "b.jar", "spark.executor.extraJavaOptions": "-Db=2", "spark.ui.enabled": "true",
        SECRET_FILE: "/secret", "spark.executor.memory": "4g",
    }  # fmt: skip

    assert merged(ours, theirs) == {
        "spark.jars": "a.jar,b.jar", "spark.executor.extraJavaOptions": "-Da=1 -Db=2",
        "spark.ui.enabled": "true", "spark.executor.memory": "4g",
    }  # fmt: skip


def test_the_secret_is_read_from_its_file_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    given = Spark(
        master=HERE.master,
        conf={SECRET_FILE: str(file), "spark.hadoop.fs.s3a.secret.key": "k", "spark.x": "y"},
    )

    with pytest.raises(UsageError, match="cannot be read"):
        secrets(given)
    file.write_text("\n")
    with pytest.raises(UsageError, match="is empty"):
        secrets(given)
    file.write_text("sesame\n")
    assert secrets(given) == {"spark.authenticate.secret": "sesame", "spark.hadoop.fs.s3a.secret.key": "k"}
    assert secrets(HERE) == {}


def test_a_master_where_nobody_listens_is_unreachable(listening: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        closed = door.getsockname()[1]

    with pytest.raises(
        UnreachableError, match=f"no Spark master answers at spark://127.0.0.1:{closed}"
    ) as none:
        of(Spark(master=f"spark://127.0.0.1:{closed}"))

    assert "refused" in none.value.why and "[spark]" in none.value.remedy
    assert "answers" in of(Spark(master=f"spark://127.0.0.1:{closed},127.0.0.1:{listening}"))


def test_a_master_of_another_version_is_refused(listening: int, telling: list[str]) -> None:
    given = Spark(master=f"spark://127.0.0.1:{listening}")

    told = of(given)  # it tells something else
    telling.append("3.5.1")
    with pytest.raises(UsageError, match=r"is 3\.5\.1") as refused:
        of(given)
    telling[0] = version("pyspark")

    assert told == f"{given.master}: answers"
    assert version("pyspark") in refused.value.remedy
    assert of(given) == f"{given.master}: answers, Spark {version('pyspark')}"


def test_a_driver_without_a_cluster_asks_nobody() -> None:
    assert of(Spark()) == "local[*]: inside the lake server"
    with pytest.raises(UsageError, match="may not set"):
        of(Spark(conf={"spark.sql.ansi.enabled": "false"}))


@pytest.mark.parametrize("master", ["local[*]", HERE.master])
def test_a_door_of_the_driver_is_not_opened_to_all_by_another_setting(master: str) -> None:
    with pytest.raises(UsageError, match=r"reached by 0\.0\.0\.0, and nothing asks"):
        of(Spark(master=master, conf={"spark.driver.bindAddress": "0.0.0.0"}))


def test_passwords_go_to_executors_elsewhere_encrypted_or_by_a_word_of_the_operator(listening: int) -> None:
    kafka = Kafka(bootstrap_servers="kafka:9092", security="SASL_SSL", username="u", password="p")

    def given(**more: str) -> Spark:
        conf = {"spark.authenticate": "true", **more}
        return Spark(master=f"spark://127.0.0.1:{listening}", advertised_host="10.0.0.7", conf=conf)

    with pytest.raises(UsageError, match="readable on the way to the executors") as refused:
        of(given(), kafka)

    assert "spark.network.crypto.enabled" in refused.value.remedy
    assert "answers" in of(given(**{"spark.network.crypto.enabled": "true"}), kafka)
    assert "answers" in of(given(**{"spark.network.crypto.enabled": "false"}), kafka)


def test_executors_elsewhere_need_a_kafka_that_they_reach(listening: int) -> None:
    given = Spark(
        master=f"spark://127.0.0.1:{listening}",
        advertised_host="10.0.0.7",
        conf={"spark.authenticate": "true"},
    )

    with pytest.raises(UsageError, match="cannot read this machine's own Kafka") as refused:
        of(given)

    assert "10.0.0.7" in refused.value.why
    assert "[kafka]" in refused.value.remedy
    assert "answers" in of(given, Kafka(bootstrap_servers="kafka:9092"))


def test_sparks_own_pages_are_not_opened_to_a_network_that_nobody_asks() -> None:
    """They listen where the driver does; `spark.authenticate` is not about them."""
    far = {"spark.driver.bindAddress": "0.0.0.0", "spark.authenticate": "true", "spark.ui.enabled": "true"}

    with pytest.raises(UsageError, match="ask nobody"):
        refuse_open(Spark(conf=far))
    with pytest.raises(UsageError, match=r"lake\.example\.com"):
        refuse_open(Spark(
            master="spark://far:7077", advertised_host="lake.example.com",
            conf={"spark.authenticate": "true", "spark.ui.enabled": "true"},
        ))  # fmt: skip

    refuse_open(Spark(conf={**far, "spark.ui.filters": "com.example.Login"}))
    refuse_open(Spark(conf={"spark.ui.enabled": "true"}))
