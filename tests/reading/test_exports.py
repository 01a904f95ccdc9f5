"""Large results: all rows of a statement in a file or in batches, whole or not at all, by the real server."""

from __future__ import annotations

import io
import json
import os
import pty
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import twinlake
from tests.reading.conftest import ALL, Released, SqlServer
from tests.reading.test_answers import VALUES
from tests.reading.test_rights import Person
from tests.reading.test_running_sql import LONG, SHORT, Sent, of, seen, write_down
from twinlake.base.errors import BusyError, TwinlakeError, UnreachableError, UsageError
from twinlake.base.waiting import wait_for
from twinlake.cli.app import build_app
from twinlake.config.settings import Settings
from twinlake.reading import file_formats, typed_files, wire
from twinlake.reading.client import ask_arrow
from twinlake.reading.export_client import open_batches
from twinlake.reading.facts_client import end, running
from twinlake.reading.turns import EXPORTS_AT_ONCE

ROWS = 3_000_000
MANY = f"""SELECT id, cast(id % 1000 AS string) AS text, cast(id / 100 AS decimal(12, 2)) AS amount,
    if(id % 3 = 0, NULL, id * 2) AS other FROM range({ROWS})"""
TOTALS = """count(*), sum(id), sum(CAST(amount AS decimal(12, 2))), count(other), sum(other),
    count(DISTINCT text)"""
LARGE = "SELECT id, repeat('x', 1000) AS x FROM range(0, 100000, 1, 20)"
"""100 MB: no buffer between server and client holds it."""
FAR = "date'+12026-01-31'"
WAIT_S = 60.0


@pytest.fixture
def command(sql: SqlServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("TWINLAKE_HOME", str(sql.home))
    sql.services.save(Settings(home=sql.home).services_file)
    return lambda *arguments: CliRunner().invoke(build_app(), ["query", *map(str, arguments)])


def read(file: Path) -> pa.Table:
    if file.suffix == ".parquet":
        return parquet.read_table(file)
    with pa.OSFile(str(file)) as opened, pa.ipc.open_file(opened) as stream:
        return stream.read_all()


def spooled(sql: SqlServer) -> list[Path]:
    """What large results have on the server's disk."""
    return [*(sql.scratch / "local").rglob("export-*")]


def until_free(sql: SqlServer) -> None:
    wait_for("nothing to be kept", lambda: (not spooled(sql) and not running(sql.services)) or None, WAIT_S)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_a_file_has_all_rows_of_any_number(
    sql: SqlServer, command: Callable[..., Any], tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"many.{ending}"
    done = command(MANY, "--output", file)

    assert done.exit_code == 0, done.output
    found: Any = duckdb.connect()
    scanned = f"'{file}'"
    if ending == "arrow":
        found.register("many", read(file))
        scanned = "many"
    ((*got,),) = found.sql(f"SELECT {TOTALS} FROM {scanned}").fetchall()
    assert [*map(int, got)] == [
        ROWS, ROWS * (ROWS - 1) // 2, ROWS * (ROWS - 1) // 200, 2 * ROWS // 3,
        ROWS * (ROWS - 1) - 2 * sum(range(0, ROWS, 3)), 1_000,
    ]  # fmt: skip
    assert done.stderr.startswith("3,000,000 rows in ")
    assert [*tmp_path.iterdir()] == [file]
    if ending != "csv":
        table = read(file)
        assert table["id"].to_pylist() == [*range(ROWS)], "in their order"
        facts = wire.facts_of(table.schema)
        assert (facts["rows"], facts["truncated"], facts["stalled"]) == (ROWS, False, [])
    until_free(sql)


def test_every_type_comes_round(sql: SqlServer, command: Callable[..., Any], tmp_path: Path) -> None:
    columns = ", ".join(f"{text} AS c{number}" for number, (text, _) in enumerate(VALUES))
    nulls = ", ".join(f"if(id = 1, NULL, c{number}) AS c{number}" for number in range(len(VALUES)))
    asked = f"SELECT {nulls} FROM (SELECT id, {columns} FROM range(0, 3, 1, 1)) ORDER BY id"
    whole = ask_arrow(sql.services, asked, 10)
    for ending in file_formats.FORMATS:
        done = command(asked, "--output", tmp_path / f"a.{ending}")
        assert done.exit_code == 0, (ending, done.output, done.exception)

    for ending in ("parquet", "arrow"):
        found = read(tmp_path / f"a.{ending}")
        # Parquet has no null variant with parts that are never null
        made = map(typed_files._nullable, whole.schema) if ending == "parquet" else whole.schema
        types = [one.type for one in made]
        assert [one.type for one in found.schema] == types, ending
        assert _shown(found) == _shown(whole), ending
    rows = duckdb.connect().execute(f"FROM read_csv('{tmp_path}/a.csv', all_varchar = true)").fetchall()
    assert rows[0] == rows[2] and set(rows[1]) == {None}
    for (text, value), got in zip(VALUES, rows[0], strict=True):
        if isinstance(value, dict | list):
            assert json.loads(got) == value, text
        elif "timestamp" not in text and text not in ("1.5F", FAR) and not isinstance(value, bool):
            assert got == (value if value is None else str(value)), text
    separated = duckdb.connect().execute(f"FROM read_csv('{tmp_path}/a.tsv', all_varchar = true)").fetchall()
    assert separated == rows
    listed = json.loads(command(asked, "--json").stdout)
    assert json.loads((tmp_path / "a.json").read_text()) == listed
    assert [*map(json.loads, (tmp_path / "a.ndjson").read_text().splitlines())] == listed
    by_text = dict(zip((text for text, _ in VALUES), rows[0], strict=True))
    assert by_text["timestamp'2026-01-31 12:00:00.5'"] == "2026-01-31 12:00:00.500000Z"
    assert (by_text["true"], by_text["1.5F"], by_text[FAR]) == ("true", "1.5", "12026-01-31")


def _shown(table: pa.Table) -> list[str]:
    """Also of what Python has no value for."""
    return [str(column.combine_chunks()) for column in table.columns]


def test_a_limit_cuts_and_says_so(sql: SqlServer, command: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "a.arrow"
    done = command("SELECT id FROM range(0, 1000000, 1, 4) ORDER BY id", "--limit", 70_000, "--output", file)

    table = read(file)
    assert table["id"].to_pylist() == [*range(70_000)] and wire.facts_of(table.schema)["truncated"]
    assert "only the first 70,000 rows; there are more" in done.stderr
    assert wire.facts_of(table.schema)["rows"] == 70_000


def test_text_and_arrow_go_through_a_pipe_and_parquet_does_not(command: Callable[..., Any]) -> None:
    asked = "SELECT id, 'ä' AS x FROM range(3) ORDER BY id"
    as_csv, as_arrow, as_parquet = (command(asked, "--format", one) for one in ("csv", "arrow", "parquet"))
    assert as_csv.stdout == '"id","x"\n0,"ä"\n1,"ä"\n2,"ä"\n'
    assert command(asked, "--format", "tsv").stdout == as_csv.stdout.replace(",", "\t")
    rows = '{"id": 0, "x": "ä"}\n{"id": 1, "x": "ä"}\n{"id": 2, "x": "ä"}\n'
    assert command(asked, "--format", "ndjson").stdout == rows
    assert command(asked, "--format", "JSON").stdout == "[\n" + rows[:-1].replace("\n", ",\n") + "\n]\n"
    assert command("SELECT 1 AS a WHERE false", "--format", "json").stdout == "[]\n"
    assert command("SELECT 1 AS a WHERE false", "--format", "ndjson").stdout == ""
    with pa.ipc.open_stream(io.BytesIO(as_arrow.stdout_bytes)) as stream:
        assert stream.read_all()["id"].to_pylist() == [0, 1, 2]
    assert isinstance(as_parquet.exception, UsageError) and "--output" in as_parquet.exception.remedy


def test_bytes_are_not_written_to_a_terminal(command: Callable[..., Any], sql: SqlServer) -> None:
    main, terminal = pty.openpty()
    asked = [sys.executable, "-m", "twinlake", "query", "SELECT 1", "--format", "arrow"]
    done = subprocess.run(
        asked, stdout=terminal, stderr=subprocess.PIPE, text=True, env={**os.environ, "TERM": "dumb"}
    )
    os.close(terminal)
    os.close(main)

    assert done.returncode == 2 and "arrow is not text" in done.stderr, done.stderr


def test_what_cannot_be_a_file_is_refused_before_anything_is_asked(
    command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("mine")
    never = "SELECT nothing"  # the server would say what is wrong with it
    refused = [
        command(never, "--output", tmp_path / "a.csv"),
        command(never, "--output", tmp_path / "none" / "a.csv"),
        command(never, "--output", tmp_path / "a.xlsx"),
        command(never, "--format", "xlsx", "--output", tmp_path / "b"),
        command(never, "--format", "csv", "--json"),
        command(never, "--limit", 1_000_001),
    ]

    says = [str(done.exception) for done in refused]
    for part, said in zip(
        ("is there already", "there is no folder", "does not end like", "no such format", "two forms",
         "1,000,001 rows are too many"), says, strict=True,
    ):  # fmt: skip
        assert part in said
    assert (tmp_path / "a.csv").read_text() == "mine"
    assert command("SELECT 1 AS a", "--output", tmp_path / "a.csv", "--force").exit_code == 0
    assert (tmp_path / "a.csv").read_text() == '"a"\n1\n'


@pytest.mark.parametrize(
    ("asked", "why"),
    [("SELECT * FROM nowhere", "TABLE_OR_VIEW_NOT_FOUND"), ("SELECT raise_error('no')", "no"),
     ("SELECT cast(X'ff' AS string) AS x FROM range(3)", "is not UTF-8"),
     ("SELECT id, if(id = 999999, raise_error('late'), 1) AS x FROM range(1000000)", "late")],
)  # fmt: skip
def test_an_error_is_an_error_and_leaves_no_file(
    sql: SqlServer, command: Callable[..., Any], tmp_path: Path, asked: str, why: str
) -> None:
    done = command(asked, "--output", tmp_path / "a.parquet")

    assert isinstance(done.exception, UsageError) and why in done.exception.why
    assert [*tmp_path.iterdir()] == []
    until_free(sql)


def test_batches_are_all_rows_in_order_with_what_is_known_of_them(
    sql: SqlServer, command: Callable[..., Any]
) -> None:
    with twinlake.read_batches("orders", home=sql.home, columns=("order_id",)) as batches:
        facts = twinlake.metadata(batches)
        ids = [one for batch in batches for one in batch["order_id"].to_pylist()]

    assert sorted(ids) == [*range(ALL)] and facts["rows"] == ALL and facts["release"] is not None
    assert [*batches.schema.names] == ["order_id"] and [*batches] == []
    with open_batches(sql.services, "SELECT id FROM range(0)") as none:
        assert [*none] == []


def test_who_leaves_frees_disk_and_turn(sql: SqlServer) -> None:
    with open_batches(sql.services, LARGE) as batches:
        next(batches)
        there, (listed,) = spooled(sql), running(sql.services)

    assert there and (listed["state"], listed["sql"]) == ("sending", LARGE)
    with pytest.raises(UsageError, match="the batches were closed"):
        next(batches)
    until_free(sql)


def test_one_that_is_being_sent_can_be_cancelled_and_never_looks_whole(
    sql: SqlServer, released: Released
) -> None:
    operator = of(sql, "olga")
    with open_batches(sql.services, LARGE) as batches:
        next(batches)
        (one,) = running(operator)
        write_down(released, one, "the disk is needed")
        end(operator, one["id"])
        until_free(sql)
        with pytest.raises(UnreachableError) as error:
            pytest.fail(f"{len([*batches])} batches came, and an end")

    assert error.value.what == "the answer broke off"
    assert "of 100,000 rows" in error.value.why and "not all" in error.value.remedy


def test_long_ones_leave_turns_to_short_ones_and_can_be_cancelled(sql: SqlServer) -> None:
    sent = [Sent(lambda: open_batches(sql.services, LONG)) for _ in range(2)]
    one = seen(sql.services, "http")
    wait_for("both to run", lambda: len(running(sql.services)) == 2 or None, WAIT_S)

    assert sql.rows(SHORT) == [{"orders": ALL}]
    assert one["state"] == "running"
    for one in running(sql.services):
        end(sql.services, one["id"])
    for each in sent:
        error = each.told()
        assert isinstance(error, BusyError) and "analyst has cancelled it" in error.why
    until_free(sql)


@pytest.fixture
def rita(sql: SqlServer) -> Iterator[Person]:
    from twinlake.config import users

    yield Person(sql)
    users.remove(sql.scratch / "password", "rita")


def test_rows_and_columns_are_those_that_the_user_may_read(sql: SqlServer, rita: Person) -> None:
    rita.may(tables=("orders",), hidden=("orders.amount",), rows={"orders": "region = 'r1'"})
    services = of(sql, "rita")

    def ask_all() -> pa.Table:
        with open_batches(services, "SELECT * FROM orders") as batches:
            return pa.Table.from_batches(batches, batches.schema)

    found = wait_for("the rights", ask_all, WAIT_S, unready=(TwinlakeError,))
    assert "amount" not in found.column_names
    assert set(found["region"].to_pylist()) == {"r1"} and 0 < found.num_rows < ALL
    with pytest.raises(UsageError):
        open_batches(services, "SELECT * FROM serve.latest_order")


def test_who_loses_a_right_in_the_middle_gets_no_more_rows_and_never_an_end(
    sql: SqlServer, rita: Person
) -> None:
    rita.may(tables=("orders", "sales_per_region"))
    services = of(sql, "rita")
    with open_batches(services, LARGE) as batches:
        next(batches)
        rita.may(tables=("sales_per_region",))
        until_free(sql)
        with pytest.raises(UnreachableError, match="the answer broke off"):
            pytest.fail(f"{len([*batches])} batches came, and an end")

    with pytest.raises(UsageError):
        open_batches(services, "SELECT * FROM orders")


def test_short_statements_do_not_wait_beside_as_many_exports_as_there_are(sql: SqlServer) -> None:
    def short() -> float:
        began = time.monotonic()
        assert sql.rows(SHORT) == [{"orders": ALL}]
        return time.monotonic() - began

    alone = statistics.median(short() for _ in range(5))
    busy = "SELECT sum(hash(a.id, b.id)) AS n FROM range(0, 40000000, 1, 40) a CROSS JOIN range(10000) b"
    sent = [Sent(lambda: open_batches(sql.services, busy)) for _ in range(EXPORTS_AT_ONCE)]
    wait_for("them", lambda: len(running(sql.services)) == len(sent) or None, WAIT_S)
    sql.until_busy(2)
    beside = [short() for _ in range(5)]

    states = sorted(one["state"] for one in running(sql.services))
    for one in running(sql.services):
        end(sql.services, one["id"])
    assert all(isinstance(one.told(), BusyError) for one in sent)
    assert states == ["running"] * EXPORTS_AT_ONCE
    assert max(beside) < 10 + 4 * alone, (alone, beside)
    print(
        f"short ones: {alone:.2f} s alone, {statistics.median(beside):.2f} s beside exports", file=sys.stderr
    )
    until_free(sql)


def test_batches_are_taken_by_several_at_once(sql: SqlServer) -> None:
    rows = list[int]()

    def take() -> None:
        with open_batches(sql.services, LARGE) as batches:
            rows.append(sum(batch.num_rows for batch in batches))

    takers = [threading.Thread(target=take) for _ in range(4)]
    for one in takers:
        one.start()
    for one in takers:
        one.join(WAIT_S)

    assert rows == [100_000] * 4
    until_free(sql)
