"""Of a paused topic nothing is taken off Kafka, over a restart too, and nothing is lost: on a real broker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.ingest.stage import Stage
from tests.ingest.whole_server import WholeServer
from twinlake.base.errors import BusyError
from twinlake.base.times import utc_now
from twinlake.server import topic_watch


def test_a_paused_topic_takes_no_record_and_goes_on_where_it_was(
    whole: WholeServer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_watch, "SETTINGS_S", 0.0)
    stage.orders("a", "b")
    whole.until_records(2)
    paused = whole.do("pause", name=whole.name, by="anna", reason="the source sends rubbish")
    twice = whole.do("pause", name=whole.name, by="ben")
    stage.orders("c", "d", "e", partition=1)
    whole.until("the lag", lambda: whole.topic()["lag_records"] == 3)
    before = whole.topic()
    with pytest.raises(BusyError, match="is paused since"):
        whole.do("replay", topic=whole.name)
    whole.restart()
    whole.until("the lag", lambda: whole.topic()["lag_records"] == 3)
    after = whole.topic()
    # to the watch, the records are as old as most of what Kafka keeps
    kept = timedelta(milliseconds=int(stage.kafka.setting(whole.name, "retention.ms")))
    whole.server._watches[whole.name]._clock = lambda: utc_now() + kept * 0.74
    whole.until("a look", lambda: whole.topic()["lag_records"] == 3)
    early = whole.topic()["warnings"]
    whole.server._watches[whole.name]._clock = lambda: utc_now() + kept * 0.76
    whole.until("the warning", lambda: "soon delete" in str(whole.topic()["warnings"]))
    (warning,) = [one for one in whole.topic()["warnings"] if "soon delete" in one["what"]]
    resumed = whole.do("resume", name=whole.name, by="anna")
    whole.until_records(5)

    assert (paused["changed"], twice["changed"], resumed["changed"]) == (True, False, True)
    for shown in (before, after):
        assert (shown["state"], shown["records"], shown["error"]) == ("paused", 2, None)
        assert shown["paused"] == paused["paused"] == twice["paused"]
        assert "by anna: the source sends rubbish" in shown["paused"]["words"]
    assert not [one for one in early if "soon delete" in one["what"]]
    assert f"resume {whole.name} --topic" in warning["remedy"] and "7 days" in warning["why"]
    assert whole.topic()["paused"] is None and not whole.do("resume", name=whole.name, by="a")["changed"]
    verdicts = stage.verdicts(whole.server.lake.logs[whole.name])
    assert [(partition, offset) for _, partition, offset, _, _ in verdicts] == [
        (0, 0), (0, 1), (1, 0), (1, 1), (1, 2)
    ]  # fmt: skip


def test_a_topic_is_paused_in_the_middle_of_a_backlog(whole: WholeServer, stage: Stage) -> None:
    whole.do("pause", name=whole.name, by="anna")
    ids = [f"id{number}" for number in range(200)]
    stage.orders(*ids)
    ingest: Any = whole.server.ingests[whole.name]
    ingest._pace._most = ingest._pace.next_records = 5  # a batch is so many records
    ingest._limit.set(5)
    whole.do("resume", name=whole.name, by="anna")
    whole.until("the first batches", lambda: whole.topic()["records"] >= 10)

    whole.do("pause", name=whole.name, by="anna")
    stands = whole.topic()["records"]
    whole.until("two looks", lambda: whole.topic()["lag_records"] == 200 - stands)

    assert 10 <= stands < 200 and whole.topic()["records"] == stands
    ingest._pace._most = 1000
    ingest._limit.set(1000)
    whole.do("resume", name=whole.name, by="anna")
    whole.until_records(200)
