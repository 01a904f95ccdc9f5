"""One way through everything, short enough for `make quick` (see `tests/conftest.py`)."""

from __future__ import annotations

import pytest

from tests.ingest.stage import Stage
from tests.ingest.test_reload import built, send
from tests.ingest.whole_server import WholeServer
from twinlake.base.job import Run


@pytest.fixture
def stage(faked: Stage) -> Stage:
    return faked


def test_records_of_a_topic_are_in_its_log_and_the_valid_ones_in_the_view_of_a_table(
    whole: WholeServer, stage: Stage
) -> None:
    lake = whole.server.lake
    version = lake.version(built(whole))

    def shown() -> list[int]:
        view = lake.versions.opened(version).view(lake.versions.pin(version, Run(id="reader")))
        return [row["orders"] for row in view.select("orders").collect()]

    send(stage, whole.name, "a", "b", "c")
    send(stage, whole.name, "d", status="refunded")

    whole.until_records(4)
    assert whole.topic()["counts"]["invalid"] == 1
    whole.until("the view", lambda: shown() == [3])
