"""A backfill up to the end of all time."""

from __future__ import annotations

from twinlake.airflow.backfill import chunks_between


def test_the_last_hours_of_the_year_9999_are_a_chunk_like_any_other() -> None:
    found = chunks_between("9999-12-31T13:00:00Z", "9999-12-31T23:59:59Z", 6)

    assert found == [
        {"from": "9999-12-31T13:00:00Z", "to": "9999-12-31T19:00:00Z"},
        {"from": "9999-12-31T19:00:00Z", "to": "9999-12-31T23:59:59Z"},
    ]
