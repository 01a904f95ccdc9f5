"""A topic whose log is damaged says so for as long as it cannot go on, and goes on once it can."""

from __future__ import annotations

from pathlib import Path

from jobs.errors import DamagedError
from jobs.ingest.ingest import RUNNING
from jobs.lake import delta
from tests.ingest.stage import Stage


def test_a_topic_that_needs_a_damaged_file_is_not_running_until_the_file_is_restored(stage: Stage) -> None:
    """The ids of the last hour are looked up in it: without them a redelivery would be valid again."""
    stage.create()
    stage.orders("a", "b")
    log = stage.run()
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
    stage.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # as another process finds it
    again = stage.run()
    assert [(offset, verdict) for _, _, offset, verdict, _ in stage.verdicts(again)] == [
        (0, "valid"), (1, "valid"), (2, "valid"),
    ]  # fmt: skip
