"""`twinlake sql` against the real server: statements of a pipe, and the names that are completed."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tests.reading.conftest import ALL, SqlServer
from twinlake.base.errors import UsageError
from twinlake.cli.app import build_app
from twinlake.cli.sql import completing
from twinlake.config.settings import Settings


@pytest.fixture(autouse=True)
def at_home(sql: SqlServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINLAKE_HOME", str(sql.home))
    sql.services.save(Settings(home=sql.home).services_file)


def test_statements_of_a_pipe_are_answered_one_after_the_other() -> None:
    counted = "SELECT count(*) AS n FROM orders;\n-- how it is written\n"
    asked = f"{counted}SELECT 'a;b' AS t, `amount` FROM orders LIMIT 2;"
    done = CliRunner().invoke(build_app(), ["sql"], input=asked)

    assert done.exit_code == 0, done.output
    assert done.stdout.split()[:2] == ["n", f"{ALL}"] and done.stdout.count("a;b") == 2

    wrong = "SELECT 1 AS one; SELECT nothing; SELECT 2 AS two"
    failed = CliRunner().invoke(build_app(), ["sql"], input=wrong)
    assert isinstance(failed.exception, UsageError) and "one" in failed.stdout and "two" not in failed.stdout


def test_tables_and_columns_of_the_release_are_completed(sql: SqlServer) -> None:
    complete = completing(sql.services)
    assert [complete("latest_o", number) for number in (0, 1)] == ["latest_order", None]
    assert complete("window_s", 0) == "window_start" and complete("SER", 0) == "serve"
