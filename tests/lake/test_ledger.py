"""A ledger loses no fact: not to a restart, not to a clean-up, not to threads that write at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from twinlake.lake.delta import ledger
from twinlake.lake.delta.ledger import Ledger

THREADS = 6
SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])


def fact(number: int, text: str | None = "said") -> dict[str, Any]:
    return {"number": number, "text": text}


def by_number(opened: Ledger) -> list[dict[str, Any]]:
    """Rows come in no order of their own."""
    return sorted(opened.rows(), key=lambda row: row["number"])


def files(opened: Ledger) -> int:
    return len(DeltaTable(str(opened.path)).file_uris())


def test_a_ledger_that_was_never_written_is_empty_and_leaves_no_folder(tmp_path: Path) -> None:
    opened = Ledger(tmp_path / "facts", SCHEMA)

    found = (opened.rows(), opened.compact())

    assert (found, list(tmp_path.iterdir())) == (([], False), [])


def test_rows_survive_a_restart_as_they_were(tmp_path: Path) -> None:
    before = Ledger(tmp_path / "deep" / "facts", SCHEMA)
    before.append([fact(1), fact(2, None)])
    before.append([fact(3, "größer 🚀")])

    restarted = Ledger(tmp_path / "deep" / "facts", SCHEMA)

    assert by_number(restarted) == [fact(1), fact(2, None), fact(3, "größer 🚀")]


def test_the_rows_of_one_append_are_one_commit(tmp_path: Path) -> None:
    opened = Ledger(tmp_path / "facts", SCHEMA)
    opened.append([fact(1)])
    before = DeltaTable(str(opened.path)).version()

    opened.append([fact(2), fact(3), fact(4)])

    assert DeltaTable(str(opened.path)).version() == before + 1
    assert by_number(opened) == [fact(1), fact(2), fact(3), fact(4)]


def test_rows_that_were_equal_stay_several(tmp_path: Path) -> None:
    opened = Ledger(tmp_path / "facts", SCHEMA)

    opened.append([fact(1)])
    opened.append([fact(1)])

    assert opened.rows() == [fact(1), fact(1)]


def test_a_ledger_is_compacted_only_above_the_number_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "COMPACT_ABOVE_FILES", 3)
    opened = Ledger(tmp_path / "facts", SCHEMA)
    answers = []
    for number in range(4):
        opened.append([fact(number)])
        answers.append((opened.compact(), files(opened)))

    assert answers == [(False, 1), (False, 2), (False, 3), (True, 1)]
    assert by_number(opened) == [fact(number) for number in range(4)]


def test_what_a_clean_up_replaced_stays_for_a_reader_that_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "COMPACT_ABOVE_FILES", 1)
    opened = Ledger(tmp_path / "facts", SCHEMA)
    opened.append([fact(1)])
    opened.append([fact(2)])
    reader = DeltaTable(str(opened.path))

    opened.compact()

    assert sorted(reader.to_pyarrow_table()["number"].to_pylist()) == [1, 2]


def test_a_ledger_goes_on_after_a_clean_up_and_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "COMPACT_ABOVE_FILES", 1)
    before = Ledger(tmp_path / "facts", SCHEMA)
    before.append([fact(1)])
    before.append([fact(2)])
    before.compact()

    restarted = Ledger(tmp_path / "facts", SCHEMA)
    restarted.append([fact(3)])

    assert by_number(restarted) == [fact(1), fact(2), fact(3)]


def at_once(work: Callable[[int], None]) -> None:
    """`work(thread)` in every thread, all let go at the same moment; what one raises is raised."""
    together = threading.Barrier(THREADS)

    def started(thread: int) -> None:
        together.wait(timeout=60)
        work(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(started, range(THREADS)))


def test_threads_that_write_the_first_rows_at_once_lose_nothing(tmp_path: Path) -> None:
    """Several ledgers, because they only seldom meet at the moment in which one is created."""
    ledgers = [Ledger(tmp_path / f"facts{number}", SCHEMA) for number in range(8)]

    for opened in ledgers:
        at_once(lambda thread, opened=opened: opened.append([fact(thread)]))  # type: ignore[misc]

    assert [by_number(opened) for opened in ledgers] == [[fact(n) for n in range(THREADS)]] * len(ledgers)


def test_a_clean_up_that_meets_appends_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "COMPACT_ABOVE_FILES", 2)
    opened, rounds = Ledger(tmp_path / "facts", SCHEMA), 4

    def write(thread: int) -> None:
        for number in range(rounds):
            opened.append([fact(thread * rounds + number)])
            opened.compact()

    at_once(write)

    assert by_number(opened) == [fact(number) for number in range(THREADS * rounds)]
