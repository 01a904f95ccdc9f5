"""A topic whose log is damaged says so for as long as it cannot go on, and goes on once it can."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.damages import OF_COMMITS, OF_DATA, forget
from tests.ingest.stage import Stage
from tests.ingest.test_replay import JOB, latest, mend, reading
from twinlake.base.errors import DamagedError
from twinlake.ingest.ingest import RUNNING
from twinlake.lake.delta import delta
from twinlake.lake.delta.read_errors import damage_in


def test_a_topic_that_needs_a_damaged_file_is_not_running_until_the_file_is_restored(stage: Stage) -> None:
    """The ids of the last hour are looked up in it, where this machine has kept none of them: without them a
    redelivery would be valid again."""
    stage.create()
    stage.orders("a", "b")
    log = stage.run()
    shutil.rmtree(stage.settings.kept_ids)
    file = log.path / next(iter(log.appender.files()))
    kept = file.read_bytes()
    file.write_bytes(kept[: len(kept) // 2])
    stage.orders("b", "c")

    ingest = stage.ingest()
    stage.until(lambda: ingest.error is not None, ingest)
    states = set()
    for _ in range(3):  # several tries
        failed = ingest.error
        stage.until(lambda failed=failed: ingest.error is not failed, ingest)
        states.add((ingest.state, type(ingest.error)))

    assert states == {("retrying", DamagedError)}
    error = ingest.error
    assert isinstance(error, DamagedError) and error.facts["file"] == str(file)
    assert f"it has {len(kept) // 2:,} bytes" in error.why and "of batch 1" in error.facts["expected"]
    assert "restore the file from a backup" in error.remedy

    file.write_bytes(kept)
    stage.caught_up(ingest)

    assert (ingest.state, ingest.error) == (RUNNING, None)
    assert [verdict for *_, verdict, _ in stage.verdicts(log)] == ["valid", "valid", "duplicate", "valid"]


def test_a_log_that_cannot_be_mended_is_moved_away_and_read_again_from_kafka(stage: Stage) -> None:
    stage.create()
    stage.orders("a", "b")
    log = stage.run()
    newest = delta.commit_file(log.path / delta.LOG_FOLDER, delta.newest_version(log.path))
    newest.write_bytes(b"")
    stage.orders("c")

    ingest = stage.ingest()
    stage.until(lambda: ingest.error is not None, ingest)

    error = ingest.error
    assert isinstance(error, DamagedError) and error.facts["file"] == str(newest)
    assert ingest.state == "retrying" and f"move the folder {log.path} away" in error.remedy
    ingest.stop()
    Path(log.path).rename(log.path.with_name("damaged"))
    forget(stage.spark)
    again = stage.run()
    assert [(offset, verdict) for _, _, offset, verdict, _ in stage.verdicts(again)] == [
        (0, "valid"), (1, "valid"), (2, "valid"),
    ]  # fmt: skip


@pytest.mark.faults
def test_a_replay_over_a_damaged_file_names_it_admits_nothing_and_goes_on_once_it_is_restored(
    stage: Stage,
) -> None:
    stage.create()
    stage.orders("a", "b", status="lost")
    stage.orders("c")
    stage.run()
    mend(stage, "lost")
    ingest = reading(stage)
    log = ingest.log
    before, end = latest(log), log.end()
    file = log.path / max(log.appender.files().items(), key=lambda one: one[1].bytes)[0]

    commit = delta.commit_file(log.path / delta.LOG_FOLDER, delta.newest_version(log.path) - 1)
    cases = [(file, *case) for case in OF_DATA.values()]
    cases += [(commit, damage, " bytes: ") for damage in OF_COMMITS.values()]
    for file, damage, found in cases:
        whole = file.read_bytes()
        forget(stage.spark)
        damage(file)
        with pytest.raises((PySparkException, Py4JJavaError, DamagedError)) as refused:
            ingest.replay((), JOB)
        error = damage_in(refused.value, log.lake)  # as whoever does a job says it
        file.write_bytes(whole)

        assert error and error.facts["file"] == str(file) and found in error.why
        assert error.facts["topic"] == log.topic.name and "restore the file" in error.remedy
        assert (ingest.state, log.end(), latest(log)) == (RUNNING, end, before)

    assert ingest.replay((), JOB).to_json()["replayed"]
    assert {verdict for verdict, *_ in latest(log).values()} == {"valid"}
