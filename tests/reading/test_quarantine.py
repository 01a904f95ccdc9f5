"""`twinlake quarantine` asks what the SQL server lets readers ask."""

from __future__ import annotations

import pytest

from tests.reading.conftest import ALL, SqlServer
from twinlake.base.errors import NotFoundError
from twinlake.cli.quarantine import quarantined

GROUP = {"verdict": "invalid", "reason": "malformed_body", "contract": "1.0.0"}


def test_a_quarantine_is_read_through_the_views_of_the_live_release(sql: SqlServer) -> None:
    found = quarantined(sql.services, "orders", ["malformed_body"], 3)

    at = "2023-11-14T22:46:40Z"
    sample = {"epoch": 0, "partition": 0, "offset": ALL, "timestamp": at, "key": b"c0".hex(), "value": "00ff"}
    assert found == {
        "topic": "orders", "records": {"invalid": 1}, "replayed": [],
        "groups": [{**GROUP, "records": 1, "first": at, "last": at, "samples": [sample]}],
    }  # fmt: skip
    assert quarantined(sql.services, "orders", [], 0)["groups"][0]["samples"] == []
    assert quarantined(sql.services, "orders", ["empty"], 3)["groups"] == []


def test_a_topic_of_which_nothing_is_served_is_not_found(sql: SqlServer) -> None:
    with pytest.raises(NotFoundError, match="no quarantine of topic 'order`s' is shown"):
        quarantined(sql.services, "order`s", [], 3)
