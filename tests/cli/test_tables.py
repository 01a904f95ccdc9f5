"""What `tables` and `describe` ask and print."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.cli.answers import Answers
from tests.console import table_answers
from tests.console.conftest import CERTIFICATE, RELEASE, STATUS, VERSION
from twinlake.base.errors import NotFoundError, UnreachableError

Twinlake = Callable[..., Result]
NEW = {**VERSION, "table": "by_day", "version": "n-1", "lag_seconds": 75.0, "stalled": True}
BEFORE = {**VERSION, "version": "v-0", "lag_seconds": 900.0}


def answers(**status: Any) -> Answers:
    found = Answers()
    found.status = {**STATUS, **status}
    found.tables = {"sales": table_answers.table()}
    return found


def rows(done: Result) -> list[list[str]]:
    assert done.exit_code == 0, done.output
    return [[cell.strip() for cell in line.split("  ") if cell] for line in done.stdout.splitlines()]


def test_each_table_has_one_line_with_what_is_live(twinlake: Twinlake) -> None:
    found = answers(versions=[BEFORE, NEW, VERSION], certificates=[CERTIFICATE])

    _, *shown = rows(twinlake(found, "tables"))

    assert shown == [
        ["by_day", "stalled", "none", "75.0 s", "not certified yet"],
        ["sales", "maintained", "v-1", f"{VERSION['lag_seconds']:.1f} s", "equal"],
    ]  # fmt: skip


def test_json_has_what_scripts_need(twinlake: Twinlake) -> None:
    found = answers(versions=[NEW], release=None, certificates=[{**CERTIFICATE, "equal": False}])

    assert json.loads(twinlake(found, "tables", "--json").stdout) == [
        {"table": "by_day", "version": "n-1", "live": False, "state": "stalled", "behind_seconds": 75.0,
         "equal": None},
    ]  # fmt: skip


def test_a_certificate_that_is_not_equal_is_shown(twinlake: Twinlake) -> None:
    found = answers(release=RELEASE, certificates=[{**CERTIFICATE, "equal": False}])

    assert rows(twinlake(found, "tables"))[1][-1] == "different"


def test_without_any_table_it_says_what_comes_next(twinlake: Twinlake) -> None:
    done = twinlake(answers(versions=[], release=None, certificates=[]), "tables")

    assert done.stdout == "there is no table yet\n" and "twinlake plan" in done.stderr


@pytest.mark.parametrize("command", ["tables", "changelog", "webhook", "publish"])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_nothing_is_listed_while_the_lake_server_starts(
    twinlake: Twinlake, command: str, more: list[str]
) -> None:
    starting = Answers()
    starting.ready = False

    done = twinlake(starting, command, *more)

    assert isinstance(done.exception, UnreachableError) and done.exception.exit_code == 3
    assert done.exception.what == "the lake server is starting" and not done.stdout


def test_a_table_is_described(twinlake: Twinlake) -> None:
    shown = twinlake(answers(), "describe", "sales").stdout

    assert shown.startswith("sales: Sales of each region per minute. One row per region and minute.\n")
    assert "live version    v-1\n" in shown and "keys            region, window_start\n" in shown
    assert "read by         by_day\n" in shown and "rows decided by orders.status\n" in shown
    assert "speed and batch are equal over all of history, 12,345 rows" in shown
    assert ["sales", "decimal(38,2)", "without cancelled ones", "orders.amount"] in rows(
        twinlake(answers(), "describe", "sales")
    )


def test_its_json_is_that_of_the_api(twinlake: Twinlake) -> None:
    assert json.loads(twinlake(answers(), "describe", "sales", "--json").stdout) == json.loads(
        json.dumps(table_answers.table())
    )


def test_what_is_no_table_is_named(twinlake: Twinlake) -> None:
    done = twinlake(answers(), "describe", "sale")

    assert isinstance(done.exception, NotFoundError) and "'sale'" in str(done.exception)
