"""Readers of a damaged table are told the file, what was expected and what can be done; others read on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from jobs.lake import delta
from jobs.lake.version import Version, version_file
from jobs.waiting import wait_for
from tests.reading.conftest import Released, SqlServer

LATEST = "SELECT * FROM serve.latest_order ORDER BY customer"
NUMBERS = count(90)
OTHERS = "SELECT sum(orders) AS n FROM serve.sales_per_region"


@pytest.fixture
def copied(released: Released, sql: SqlServer) -> Iterator[list[Version]]:
    """Makes builds of the latest orders of their own to damage, as copies; afterwards nothing names them."""
    made: list[Version] = []
    yield made
    released.promote(released.all_orders)
    live = released.promote(released.all_orders)
    sql.wait_until(lambda status: status["release"] == live.number and not status["error"])
    for version in made:
        shutil.rmtree(version.path(released.lake), ignore_errors=True)
        version.retired("2026-02-01T00:00:00Z").save(released.lake)


def build(released: Released, copied: list[Version]) -> Version:
    """One more build, its rows a copy."""
    source = released.paid_latest
    number = next(NUMBERS)
    made = replace(source, build=number, fingerprint=f"{number:012x}")
    shutil.copytree(source.path(released.lake), made.path(released.lake))
    made.save(released.lake)
    copied.append(made)
    return made


def promoted(released: Released, sql: SqlServer, version: Version) -> None:
    live = released.promote(released.all_orders, version)
    sql.wait_until(lambda status: status["release"] == live.number)


def refused(sql: SqlServer, statement: str) -> dict[str, Any]:
    answer = sql.ask(statement)
    assert answer.status_code == 503, answer.text
    found: dict[str, Any] = answer.json()
    return found


def flip(file: Path) -> None:
    """Bits of every column, none of the footer: it is as long as it was."""
    content = bytearray(file.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    for place in range(4, len(content) - footer, 40):
        content[place] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (Path.unlink, "it is not there"),
        (lambda file: file.write_bytes(b""), "it has 0 bytes"),
        (flip, "expected: "),
    ],
    ids=["missing", "empty", "other bytes"],
)
def test_a_query_over_a_damaged_data_file_names_it_and_the_build_that_mends_it(
    released: Released, sql: SqlServer, copied: list[Version], damage: Any, found: str
) -> None:
    version = build(released, copied)
    file = max(version.path(released.lake).glob("*/*.parquet"), key=lambda file: file.stat().st_size)
    damage(file)
    promoted(released, sql, version)

    error = refused(sql, LATEST)

    assert error["error"] == "DamagedError" and error["file"] == str(file)
    assert error["belongs_to"] == f"version {version.name} of table latest_order"
    assert found in error["why"] and "bytes with " in error["expected"]
    assert error["remedy"].endswith("`twinlake plan`, `twinlake build`, `twinlake promote`")
    assert sql.rows(OTHERS)[0]["n"] > 0


@pytest.mark.faults
def test_a_torn_commit_is_named_before_and_after_the_server_has_read_the_table(
    released: Released, sql: SqlServer, copied: list[Version]
) -> None:
    version = build(released, copied)
    promoted(released, sql, version)
    shown = sql.rows(LATEST)
    log = version.path(released.lake) / delta.LOG_FOLDER
    file = delta.commit_file(log, delta.newest_version(version.path(released.lake)) + 1)

    for torn in (b"", b'{"commitInfo":{"engineInfo":"Twin'):
        file.write_bytes(torn)
        error = refused(sql, LATEST)
        assert (error["error"], error["file"]) == ("DamagedError", str(file)), error
        assert sql.rows(OTHERS)[0]["n"] > 0
        file.unlink()
        wait_for("the table", lambda: sql.ask(LATEST).is_success or None, 60)  # it may be a new text by now
        assert sql.rows(LATEST) == shown

    other = build(released, copied)
    rows = other.path(released.lake)
    first = delta.commit_file(rows / delta.LOG_FOLDER, delta.newest_version(rows))
    kept = first.read_bytes()
    first.write_bytes(b"")
    promoted(released, sql, other)  # a table that it meets torn

    error = refused(sql, LATEST)
    assert (error["error"], error["file"]) == ("DamagedError", str(first)), error
    assert sql.rows(OTHERS)[0]["n"] > 0
    first.write_bytes(kept)
    wait_for("the view to be made", lambda: sql.ask(LATEST).is_success or None, 60)
    assert sql.rows(LATEST) == shown


def test_a_version_whose_file_is_torn_stops_no_other(
    released: Released, sql: SqlServer, copied: list[Version]
) -> None:
    version = build(released, copied)
    file = version_file(released.lake, version.table, version.name)
    file.write_text(file.read_text()[:100])
    promoted(released, sql, version)

    error = refused(sql, "SELECT customer FROM serve.latest_order")

    assert (error["error"], error["file"]) == ("DamagedError", str(file))
    assert sql.rows(OTHERS)[0]["n"] > 0
