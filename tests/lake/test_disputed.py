"""A row in which another engine differs is shown with all that it takes to find out who is right."""

from __future__ import annotations

from dataclasses import replace

from twinlake.lake.catalog.disputed import disputed, explain, lines
from twinlake.witness.answer import Answer, Behind, Difference, RecordId

RECORDS = tuple(RecordId(topic="orders", epoch=0, partition=1, offset=offset) for offset in (3, 7))
CHANGED = Difference(
    key={"region": "the north", "window_start": "2026-01-31T12:00:00Z"}, columns=("sales",),
    witness={"sales": "1.00", "n": "2"}, shown={"sales": None, "n": "2"},
    behind=Behind(records=RECORDS, count=5),
)  # fmt: skip
LACKING = Difference(key={"region": None}, columns=(), witness=None, shown={"n": "1"}, behind=Behind())
ANSWER = Answer(
    table="sales", verdict="differs", engine="DuckDB 2.0.0", rows=9, differing=3,
    differences=(CHANGED, LACKING),
)  # fmt: skip
COMMAND = "twinlake explain sales --key 'region=the north' --key window_start=2026-01-31T12:00:00Z"


def test_the_lines_have_key_values_records_and_the_command_that_goes_on() -> None:
    assert lines(ANSWER) == [
        "region=the north, window_start=2026-01-31T12:00:00Z",
        "  DuckDB: sales=1.00",
        "  shown: sales=NULL",
        "  records: orders 0/1/3, 0/1/7 and 3 more",
        f"  {COMMAND}",
        "region=NULL",
        "  DuckDB: no such row",
        "  shown: n=1",
        "  records: no record of the log has this key",
        "  twinlake explain sales --key region",
        "and 1 more rows",
    ]
    assert lines(ANSWER, 1)[-1] == "and 2 more rows" and lines(replace(ANSWER, differences=())) == []


def test_the_same_as_json() -> None:
    first, second = disputed(ANSWER)

    assert first["explain"] == COMMAND and first["behind"]["count"] == 5
    assert first["behind"]["records"][0] == {"topic": "orders", "epoch": 0, "partition": 1, "offset": 3}
    assert second["witness"] is None and second["columns"] == ()


def test_a_certificate_of_before_has_no_line_of_records() -> None:
    older = replace(ANSWER, differences=(replace(CHANGED, behind=None),), differing=1)

    assert not any("records" in line for line in lines(older))


def test_a_key_that_was_cut_is_none_to_ask_about() -> None:
    assert explain("sales", replace(LACKING, key={"region": "x" * 500})) == ""
