"""Records are read of files as producers write them, and what is wrong in one is said with its line."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from tests.unit_tests.small_project import project_of
from twinlake.base.errors import NotFoundError, UsageError
from twinlake.topics.topic import Topic, load_topic
from twinlake.unit_tests.records import records
from twinlake.unit_tests.sample_files import files_of, records_in, without
from twinlake.unit_tests.source import TestMistake


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return load_topic("visits", project_of(tmp_path / "project", {}))


def written(folder: Path, text: str, name: str = "visits.jsonl") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_values_have_the_types_of_the_topic_and_all_their_digits(tmp_path: Path, topic: Topic) -> None:
    file = written(
        tmp_path,
        '{"id": "null", "page": "NO", "kind": "robot", "cents": 5.10, "seconds": 1e3,'
        ' "at": "2026-01-31T12:00:00.5Z"}\n\n'
        '{"page": null, "at": "2026-01-31T12:00:01Z", "_partition": 1, "_verdict": "invalid"}\n',
    )

    first, second = records(topic, records_in(file))

    assert first.event == {
        "id": "null", "page": "NO", "kind": "robot", "cents": Decimal("5.10"), "seconds": 1000.0,
        "at": datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC),
    }  # fmt: skip
    assert second.event is not None and second.event["page"] is None
    assert (second.partition, second.expected, second.part.line) == (1, "invalid", 3)


def test_what_a_view_of_valid_records_shows_besides_is_left_out(tmp_path: Path, topic: Topic) -> None:
    file = written(tmp_path, '{"page": "a", "_offset": 7, "_value": "{}", "_epoch": 0, "gone": 1}\n')

    (record,) = records(topic, [without(part, {"gone"}) for part in records_in(file)])

    assert record.event is not None and record.event["page"] == "a" and record.offset == 0


@pytest.mark.parametrize(
    ("line", "column", "why"),
    [
        ('{"page": }', 10, "it is not JSON: Expecting value"),
        ('["page"]', 1, "it is no object"),
        ("[" * 100_000, 1, "it is nested too deeply"),
        ('{"page": "\\ud800"}', 1, "a text in it has half a character"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: str, column: int, why: str) -> None:
    file = written(tmp_path, f'{{"page": "a"}}\n{line}\n')

    with pytest.raises(TestMistake) as wrong:
        records_in(file)

    assert {**wrong.value.facts, "file": ""} == {"file": "", "line": "2", "column": str(column), "why": why}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"pgae": "a"}', "topic visits has no field 'pgae'; did you mean page?"),
        ('{"page": "a", "page": "b"}', "'page' is given twice"),
        ('{"seconds": "many"}', "seconds is 'many', which is no double"),
    ],
)
def test_what_a_topic_cannot_have_is_named_with_its_line(
    tmp_path: Path, topic: Topic, line: str, why: str
) -> None:
    file = written(tmp_path, f"\n{line}\n")

    with pytest.raises(TestMistake) as wrong:
        records(topic, records_in(file))

    assert (wrong.value.facts["line"], wrong.value.facts["why"]) == ("2", why)


def test_a_file_is_of_the_topic_that_it_is_named_after_or_of_that_which_is_named(tmp_path: Path) -> None:
    topics = ("visits", "orders")
    visits, other = written(tmp_path, ""), written(tmp_path, "", "orders.ndjson")
    written(tmp_path, "", "README.md")

    assert files_of([str(visits)], topics) == {"visits": visits}
    assert files_of([f"orders={visits}"], topics) == {"orders": visits}
    assert files_of([str(tmp_path)], topics) == {"visits": visits, "orders": other}
    assert files_of([str(tmp_path), f"visits={visits}"], topics) == {"visits": visits, "orders": other}


@pytest.mark.parametrize(
    ("given", "error", "what"),
    [
        ("nope.jsonl", NotFoundError, "no records can be read from nope.jsonl"),
        ("visits=nope", NotFoundError, "no records can be read from visits=nope"),
        (".", NotFoundError, "no records can be read from ."),
        ("vists.jsonl", NotFoundError, "vists.jsonl has records of topic 'vists'; did you mean visits?"),
        ("visits=vists.jsonl", UsageError, "topic visits has two files: visits.jsonl and vists.jsonl"),
    ],
)
def test_files_that_say_nothing_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, error: type, what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if given != ".":
        written(tmp_path, "")
        written(tmp_path, "", "vists.jsonl")

    with pytest.raises(error) as refused:
        files_of(["visits.jsonl", given] if given != "." else [given], ["visits"])

    assert refused.value.what == what  # type: ignore[attr-defined]
