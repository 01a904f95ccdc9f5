"""What a service waits for: batches of logs, and records by their offsets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twinlake.base.errors import UsageError
from twinlake.ingest.log_end import LogEnd
from twinlake.lake.delta import delta
from twinlake.reading.passed import parse_wanted


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Of the topic orders, three batches, the last one after the topic was created again."""
    folder = tmp_path / "orders" / delta.LOG_FOLDER
    folder.mkdir(parents=True)
    ends = [(1, 0, {0: {0: 10, 1: 4}}), (2, 0, {0: {0: 20, 1: 4}}), (3, 1, {0: {0: 20, 1: 4}, 1: {0: 2}})]
    for version, (batch, epoch, of_epochs) in enumerate(ends):
        end = LogEnd(topic="orders", batch=batch, epoch=epoch, ends=of_epochs)
        info = {"commitInfo": {"userMetadata": json.dumps(end.metadata("batch", 1))}}
        delta.commit_file(folder, version).write_text(json.dumps(info) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("position", "offsets", "at", "is_passed"),
    [
        ("orders=2", None, 1, False),
        ("orders=2", None, 2, True),
        (None, "orders/0=9", 1, True),
        (None, "orders/0=10", 1, False),
        (None, "orders/0=10", 2, True),
        (None, "orders/0=19,orders/1=4", 2, False),
        ("orders=1", "orders/0=19,orders/1=3", 2, True),
        (None, "orders/0=5", 3, False),
        (None, "orders/0=1", 3, True),
        (None, "orders/7=0", 2, False),
        (None, "orders/0=0", 0, False),
    ],
)
def test_a_record_is_passed_with_the_batch_that_holds_it(
    logs: Path, position: str | None, offsets: str | None, at: int, is_passed: bool
) -> None:
    wanted = parse_wanted(position, offsets)

    assert wanted and wanted.is_passed(logs, {"orders": at}) is is_passed


def test_nothing_is_waited_for_where_nothing_is_said() -> None:
    assert parse_wanted(None, None) is None


@pytest.mark.parametrize(
    "text", ["", "orders=3", "orders/0", "orders/0=1,orders/0=2", "orders/a=1", "orders/0=-1"]
)
def test_offsets_of_another_form_are_refused_with_the_form(text: str) -> None:
    with pytest.raises(UsageError, match="write orders/0=1234"):
        parse_wanted(None, text)
