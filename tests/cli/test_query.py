"""What `query` sends, prints and says at the end; tests/reading and tests/tour ask the real doors."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.broker import free_port
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.cli.app import build_app
from twinlake.config.settings import Services, Settings
from twinlake.reading import client

LONG = "c" * 200
ROWS = [{"customer": LONG, "orders": 3, "last": None}, {"customer": "[bold]", "orders": 1, "last": [1]}]
ANSWER = {
    "columns": [{"name": name} for name in ("customer", "orders", "last")], "rows": ROWS, "truncated": False,
    "release": 7,
}  # fmt: skip


def laid_out(answer: dict[str, Any]) -> str:
    """As the SQL server sends it: an answer's rows come last, each on a line of its own."""
    if "rows" not in answer:
        return json.dumps(answer)
    head = json.dumps({name: value for name, value in answer.items() if name != "rows"})
    rows = ",".join("\n" + json.dumps(row, ensure_ascii=False) for row in answer["rows"])
    return f'{head[:-1]},"rows":[{rows}\n]}}'


class Door:
    """An HTTP door with one answer for everybody; `asked` are the bodies it was sent."""

    def __init__(self) -> None:
        self.status, self.answer = 200, dict[str, Any](ANSWER)
        self.asked: list[dict[str, Any]] = []
        door = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.headers["X-Twinlake-Query"] == "1"
                door.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                body = laid_out(door.answer).encode()
                self.send_response(door.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def door(home: Path) -> Iterator[Door]:
    made = Door()
    Services(sql_url=made.url, sql_user="analyst", sql_password="p").save(Settings(home=home).services_file)
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    yield made
    made.server.shutdown()
    made.server.server_close()


def query(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["query", *arguments])


def test_a_pipe_gets_every_character_of_every_row_and_the_count_goes_beside_it(door: Door) -> None:
    done = query("SELECT 1", "--limit", "5")

    assert done.exit_code == 0 and door.asked == [{"sql": "SELECT 1", "limit": 5}]
    assert LONG in done.stdout and "[bold]" in done.stdout and "null" in done.stdout
    assert done.stderr.splitlines() == ["2 rows, release 7"]


def test_what_is_really_piped_is_what_was_stored(door: Door) -> None:
    stored = ["order:new:17", "1:100:3", r"\[0-9]", "a\\", "[/]", "two\nlines\t\a\x1b[2J"]
    door.answer = {**ANSWER, "rows": [dict.fromkeys(("customer", "orders", "last"), one) for one in stored]}

    asked = [sys.executable, "-m", "twinlake", "query", "SELECT 1"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as twinlake:
        told = subprocess.run(["cat"], stdin=twinlake.stdout, stdout=subprocess.PIPE, check=True).stdout

    rows = [line.rsplit("  ", 1)[1] for line in told.decode().split("\n")[1:-1]]
    assert (twinlake.returncode, rows) == (0, [*stored[:-1], r"two\nlines\t\x07\x1b[2J"])


@pytest.mark.parametrize("name", ["plan", "createtab_stmt", "note"])
def test_a_plan_and_a_definition_are_laid_out_and_a_value_of_a_record_is_not(door: Door, name: str) -> None:
    text = "== Physical Plan ==\n+- \x1b[2JProject\n\tScan"
    door.answer = {**ANSWER, "columns": [{"name": name}], "rows": [{name: text}]}

    shown = query("EXPLAIN SELECT 1").stdout.splitlines()

    laid_out = ["== Physical Plan ==", r"+- \x1b[2JProject", "        Scan"]
    in_a_row = ["note", r"== Physical Plan ==\n+- \x1b[2JProject\n\tScan"]
    assert shown == (in_a_row if name == "note" else laid_out)


def test_as_json_it_is_the_rows(door: Door) -> None:
    done = query("SELECT 1", "--json")

    assert (done.exit_code, json.loads(done.stdout), done.stderr) == (0, ROWS, "")


def test_an_answer_that_was_cut_says_so(door: Door) -> None:
    door.answer = {**ANSWER, "truncated": True}

    assert query("SELECT 1", "--limit", "2").stderr.splitlines()[-1] == (
        "only the first 2 rows; there are more, see --limit"
    )


def test_no_statement_and_a_refused_one_are_usage_errors(door: Door) -> None:
    empty = query("  ")
    assert isinstance(empty.exception, UsageError) and door.asked == []

    door.status = 400
    door.answer = {"what": "the statement is refused", "why": "it writes", "remedy": "read"}
    refused = query("DROP VIEW x")

    assert isinstance(refused.exception, UsageError) and "it writes" in str(refused.exception)


def test_a_statement_comes_from_a_file_or_from_stdin(door: Door, tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text("SELECT 'ä'\nFROM range(1)\n")

    assert query("-f", str(file), "--format", "table").stderr.splitlines() == ["2 rows, release 7"]
    CliRunner().invoke(build_app(), ["query", "--file", "-"], input="SELECT 2")
    assert [one["sql"] for one in door.asked] == ["SELECT 'ä'\nFROM range(1)\n", "SELECT 2"]


def test_which_statement_it_is_has_to_be_clear(door: Door, tmp_path: Path) -> None:
    (tmp_path / "empty.sql").write_text(" \n")
    (tmp_path / "latin.sql").write_bytes("SELECT 'ä'".encode("latin-1"))
    for wrong, why in {
        (): "neither text nor --file is given",
        ("SELECT 1", "-f", "a.sql"): "both a text and --file are given",
        ("-f", str(tmp_path / "none.sql")): "No such file or directory",
        ("-f", str(tmp_path)): "Is a directory",
        ("-f", str(tmp_path / "latin.sql")): "can't decode byte",
        ("-f", str(tmp_path / "empty.sql")): "the text is empty",
    }.items():
        done = query(*wrong)
        assert isinstance(done.exception, UsageError) and why in done.exception.why, wrong
    assert door.asked == []


def test_a_door_that_is_shut_says_how_to_open_it(home: Path) -> None:
    Services().save(Settings(home=home).services_file)

    done = query("SELECT 1")

    assert isinstance(done.exception, UnreachableError) and "twinlake up" in str(done.exception)


def test_a_server_that_nobody_will_start_again_is_not_waited_for(home: Path) -> None:
    closed = Services(sql_url=f"http://127.0.0.1:{free_port()}", sql_user="analyst", sql_password="p")
    closed.save(Settings(home=home).services_file)

    for asked in (["query", "SELECT 1"], ["explain", "orders", "--key", "a=1"], ["quarantine", "orders"]):
        began = time.monotonic()
        done = CliRunner().invoke(build_app(), asked)

        assert isinstance(done.exception, UnreachableError), done.output
        assert "the supervisor has ended" in done.exception.why and "twinlake up" in done.exception.remedy
        assert time.monotonic() - began < client.AWAY_S / 3


MOMENT = {
    "release": 3, "position": {"orders": 120, "payments": 7},
    "computed": [{"table": "orders_per_day", "why": "no commit of it is kept"}],
}  # fmt: skip


def test_a_moment_is_sent_as_it_is_and_told_with_what_was_computed(door: Door) -> None:
    door.answer = {**ANSWER, "as_of": {"asked": "release:3", **MOMENT}}

    done = query("SELECT 1", "--as-of", "release:3")

    assert door.asked == [{"sql": "SELECT 1", "limit": 10_000, "as_of": "release:3"}]
    assert done.stderr.splitlines() == [
        "2 rows, release 7", "as of release 3, orders batch 120, payments batch 7",
        "orders_per_day was computed from the log: no commit of it is kept",
    ]  # fmt: skip


PARTITION = {
    "topic": "orders", "through": ["shares < sales_per_region"], "epoch": 0, "partition": 2,
    "records": 1_200, "first_offset": 5, "last_offset": 4_000, "batches": 30, "first_batch": 1,
    "last_batch": 90, "first_appended": "2026-01-31T12:00:00Z", "last_appended": "2026-01-31T13:00:00Z",
}  # fmt: skip
RECORD = {
    "topic": "orders", "epoch": 0, "partition": 2, "offset": 5, "batch": 1, "id": "e5",
    "timestamp": "2026-01-31T12:00:00Z",
}  # fmt: skip
WHY = {
    "table": "shares", "version": "v-1", **MOMENT, "row": {"region": "north", "orders": 1_200},
    "partitions": [PARTITION], "decided": None, "records": [RECORD],
}  # fmt: skip


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["explain", *arguments])


def test_explain_shows_the_row_the_partitions_and_the_first_records(door: Door) -> None:
    door.answer = WHY

    done = explain("shares", "--key", "region=a=b", "--key", "day")

    assert door.asked == [{"table": "shares", "key": {"region": "a=b", "day": None}, "as_of": None}]
    assert done.stdout.splitlines() == [
        "row: region=north, orders=1200",
        "topic orders, read by shares < sales_per_region",
        "topic   partition  records  offsets  batches     last appended",
        "orders  2          1,200    5-4000   30 in 1-90  2026-01-31T13:00:00Z",
        "partition  offset  batch  appended              id",
        "2          5       1      2026-01-31T12:00:00Z  e5",
    ]
    assert "the first 1 of 1,200 records:" in done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_explain_names_the_record_that_decided_the_row_first(door: Door) -> None:
    door.answer = {**WHY, "decided": {**RECORD, "offset": 4_000, "id": "e4000"}}

    done = explain("shares", "--key", "region=north")

    assert done.stdout.splitlines()[4:] == [
        "partition  offset  batch  appended              id",
        "2          4000    1      2026-01-31T12:00:00Z  e4000",
        "partition  offset  batch  appended              id",
        "2          5       1      2026-01-31T12:00:00Z  e5",
    ]
    assert done.stderr.splitlines()[0] == "the record that decided the row:"


def test_records_of_several_topics_are_told_apart_and_those_of_a_recreated_one_by_epoch(door: Door) -> None:
    other = {"topic": "customers", "epoch": 1}
    door.answer = {
        **WHY, "partitions": [PARTITION, {**PARTITION, **other}], "records": [RECORD, {**RECORD, **other}]
    }  # fmt: skip

    listed = explain("shares", "--key", "region=north").stdout.splitlines()[-3:]

    assert listed == [
        "topic      partition     offset  batch  appended              id",
        "orders     2             5       1      2026-01-31T12:00:00Z  e5",
        "customers  2 of epoch 1  5       1      2026-01-31T12:00:00Z  e5",
    ]


def test_explain_as_json_is_the_whole_answer(door: Door) -> None:
    door.answer = WHY

    assert json.loads(explain("shares", "--key", "region=north", "--json").stdout) == WHY


def test_a_key_column_that_is_given_twice_is_refused(door: Door) -> None:
    done = explain("shares", "--key", "region=a", "--key", "region=b")

    assert isinstance(done.exception, UsageError) and door.asked == []


def test_a_server_that_variables_name_needs_no_data_directory(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TWINLAKE_HOME")
    monkeypatch.chdir(tmp_path)
    assert "there is no project here" in str(query("SELECT 1").exception)
    monkeypatch.setenv("TWINLAKE_SQL_URL", door.url)
    assert "user and password is not given" in str(query("SELECT 1").exception)
    monkeypatch.setenv("TWINLAKE_SQL_USER", "analyst")
    monkeypatch.setenv("TWINLAKE_SQL_PASSWORD", "p")

    found = query("SELECT * FROM serve.orders", "--json")

    assert json.loads(found.stdout) == ROWS and door.asked[-1]["sql"] == "SELECT * FROM serve.orders"
    monkeypatch.setenv("TWINLAKE_SQL_URL", "nonsense")
    assert "'nonsense' is not the address of a SQL server" in str(query("SELECT 1").exception)


def test_an_address_that_is_none_is_said_at_once(door: Door, home: Path) -> None:
    Services(sql_url="nonsense", sql_user="a", sql_password="p").save(Settings(home=home).services_file)

    assert "'nonsense' is not an address" in str(query("SELECT 1").exception)
