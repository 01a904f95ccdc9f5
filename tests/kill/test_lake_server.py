"""kill -9 of the lake server at the three places that matter; nothing is lost and nothing counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.kill.server import LakeProcess, lake_process


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LakeProcess]:
    with lake_process(tmp_path) as made:
        yield made


def test_a_server_killed_anywhere_goes_on_without_loss_or_double_counting(server: LakeProcess) -> None:
    """Before the log's commit, between the log's and the tables', after the tables', and during a rebuild."""
    server.start()
    refused = server.second()
    server.release()
    server.produce(5_000)
    server.until(server.caught_up)
    table = next(v for v in server.client.status()["versions"] if v["table"] == "sales_per_region")
    folder = f"tables/{table['table']}/{table['version']}/_delta_log"

    assert refused.returncode == 1 and "in use by another lake server" in refused.stderr
    places = (("logs/orders", ".parquet"), ("logs/orders/_delta_log", ".json"), (folder, ".json"))
    for place, ending in places:
        before = server.files(place, ending)
        server.produce(5_000)
        server.until_more(place, ending, before)
        server.kill()
        server.start()
    job = server.client.submit("rebuild", {"table": "sales_per_region"}, key="nightly")
    server.until(lambda: server.client.job(job.id).state != "queued", every_s=0.01)
    server.kill()
    server.start()
    server.until(server.caught_up)

    coordinate = ["epoch", "partition", "offset"]
    log = DeltaTable(str(server.lake / "logs" / "orders")).to_pyarrow_table(columns=coordinate)
    assert log.num_rows == log.group_by(coordinate).aggregate([]).num_rows == server.produced
    assert server.client.job(job.id).state in ("interrupted", "succeeded")
    assert server.do("rebuild", key="nightly", table="sales_per_region")["equal"]
    for name in ("orders", "sales_per_region", "latest_order"):
        assert server.do("verify", table=name)["equal"], name
