"""The DAG `replay` run for real, beside a lake server with records in quarantine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dags.installation import Installation, states
from tests.kill.server import lake_process

pytestmark = [pytest.mark.services, pytest.mark.faults]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("replay")
    with lake_process(folder, seed) as server:
        server.start()
        server.release()
        server.produce(5_000)
        server.until(server.caught_up)
        yield Installation(server, folder / "airflow")


def test_a_replay_judges_the_quarantine_and_fails_at_once_for_a_topic_that_is_none(
    installation: Installation,
) -> None:
    refused = installation.server.client.status()["topics"][0]["counts"]

    right, wrong = installation.run(
        ("replay", {"topic": "orders", "reason": None}), ("replay", {"topic": "order"})
    )["runs"]

    assert states(right) == {"success"} and states(wrong) == {"failed"}
    jobs = [job for job in installation.server.client.jobs() if job.kind == "replay"]
    told = {job.params["topic"]: (job.state, job.result) for job in jobs}
    state, result = told["orders"]
    assert state == "succeeded" and result is not None
    assert (result["judged"], result["replayed"]) == (refused["invalid"] + refused["too_late"], 0)
    assert told["order"][0] == "failed"
    assert len(jobs) == 2
