"""`twinlake query "SQL"` and `twinlake explain TABLE`: they ask the SQL server, as any reader would."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.cli.export import NAMES, TABLE, export, format_of
from twinlake.cli.options import whole
from twinlake.cli.output import load_settings, print_json, say, show_rows, tell
from twinlake.cli.progress import working
from twinlake.config.settings import Services
from twinlake.reading.client import Waiting, ask, ask_each, ask_why
from twinlake.reading.server_address import ELSEWHERE, named_server
from twinlake.reading.wire import key_of
from twinlake.services.supervise.record import check_sql_server_is_supervised

AsOf = Annotated[
    str | None,
    typer.Option(help="as it was: release:3, position:orders=120, or a time like 2026-01-31T12:00:00Z"),
]


DEFAULT_LIMIT = 10_000
MOST_SHOWN = 1_000_000
"""Rows; more of them go into a file."""
LAID_OUT = (["plan"], ["createtab_stmt"])
"""The columns of EXPLAIN and of SHOW CREATE TABLE, whose text is shown line by line. In a value of a record a
line break is escaped: what comes after it could look like words of ours."""


def register(app: typer.Typer) -> None:
    """Adds the two commands that read."""
    app.command("query")(query_command)
    app.command("explain")(explain_command)


def query_command(
    sql: Annotated[
        str | None,
        typer.Argument(help="one statement that reads, such as SELECT * FROM serve.orders LIMIT 5"),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="read the statement from this file, - for stdin")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            parser=whole(1, 2_000_000_000), metavar="NUMBER",
            help="at most so many rows; 10,000 by default, all with a format",
        ),
    ] = None,
    as_of: AsOf = None,
    as_json: Annotated[bool, typer.Option("--json", help="print a list of row objects")] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="|".join((TABLE, *NAMES)),
            help="write all rows, however many, to --output, or to a pipe; a table is what one sees without",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="a file, which is there once it is whole; its ending is the format")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="replace the file if it is there")] = False,
) -> None:  # fmt: skip
    """Run a query on the views of the live release, or on tables as they were."""
    sql = _statement(sql, file)
    name = format_of(form, output)
    if as_json and name is not None:
        raise UsageError("two forms are asked for", f"--json and {name}", "leave out one of them")
    if force and output is None:
        raise UsageError("--force was given without a file", "there is none to replace", "name it: --output")
    services, waiting = sql_server()
    if name is not None:
        _tell(export(services, sql, name, output, force, limit, as_of, waiting), limit)
        return
    limit = DEFAULT_LIMIT if limit is None else limit
    if limit > MOST_SHOWN:
        why = f"at most {MOST_SHOWN:,} rows are shown"
        raise UsageError(f"{limit:,} rows are too many", why, "write them to a file with --output")
    if as_json:
        _tell(ask_each(services, sql, limit, as_of, _print_rows, waiting), limit)
    else:
        answer(services, sql, limit, as_of, waiting)


def answer(services: Services, sql: str, limit: int, as_of: str | None, waiting: Waiting) -> None:
    """Shows the rows of a statement, and what is to be known of them."""
    with working("the SQL server works on it"):
        found = ask(services, sql, limit, as_of, waiting)
    show(found)
    _tell(found, limit)


def _statement(given: str | None, file: Path | None) -> str:
    """What is to be asked: that on the command line, or that of the file."""
    if (given is None) == (file is None):
        why = "neither text nor --file is given" if given is None else "both a text and --file are given"
        raise UsageError("which statement to run is not clear", why, 'give one, like "SHOW VIEWS IN serve"')
    text = given if file is None else _text_of(file)
    if text is None or not text.strip():
        raise UsageError("there is no statement", "the text is empty", 'give one, like "SHOW VIEWS IN serve"')
    return text


def _text_of(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{file} cannot be read", why, "name a file with one statement") from error


def _tell(found: dict[str, Any], limit: int | None) -> None:
    """What is to be known of the rows beside them."""
    tell_freshness(found)
    if found_as_of := found.get("as_of"):
        _tell_moment(found_as_of)
    if found["truncated"]:
        tell((f"only the first {limit:,} rows; there are more, see --limit", "yellow"))


def explain_command(
    table: Annotated[str, typer.Argument(help="a table of the release")],
    key: Annotated[
        list[str] | None,
        typer.Option(help="a key column of the row, like region=north; once for each, NULL without the ="),
    ] = None,
    as_of: AsOf = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the answer as JSON")] = False,
) -> None:
    """Which records, of which partitions, offsets and batches, are behind one row of a table."""
    asked = key_of(key or [])
    services, waiting = sql_server()
    with working("the SQL server looks for its records"):
        found = ask_why(services, table, asked, as_of, waiting)
    if as_json:
        print_json(found)
        return
    say("row: ", ", ".join(f"{name}={_text(value)}" for name, value in found["row"].items()))
    for topic, ways in {one["topic"]: one["through"] for one in found["partitions"]}.items():
        say(f"topic {topic}, read by ", "; ".join(ways))
    names = ("topic", "partition", "records", "offsets", "batches", "last appended")
    show_rows(names, map(_partition, found["partitions"]))
    records = found["records"]
    several = len({one["topic"] for one in found["partitions"]}) > 1
    listed = (("topic",) if several else ()) + ("partition", "offset", "batch", "appended", "id")
    if decided := found["decided"]:
        tell("the record that decided the row:")
        show_rows(listed, [_record(decided)[-len(listed) :]])
    tell(f"the first {len(records)} of {sum(one['records'] for one in found['partitions']):,} records:")
    show_rows(listed, (_record(one)[-len(listed) :] for one in records))
    tell_freshness(found)
    _tell_moment(found)


def waiting_for_server() -> Waiting:
    """Says on stderr that the SQL server is waited for."""
    settings = load_settings()
    return Waiting(_tell_wait, lambda: check_sql_server_is_supervised(settings))


def sql_server() -> tuple[Services, Waiting]:
    """The SQL server that variables name, else that of the data directory."""
    if named := named_server(os.environ):
        return named, Waiting(_tell_wait, remedy=ELSEWHERE)
    return load_settings().services(), waiting_for_server()


def _tell_wait(text: str) -> None:
    tell((text, "yellow"))


def _print_rows(head: dict[str, Any], rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """A list of objects as `print_json` writes it, row by row."""
    began = False
    for row in rows:
        print("[" if not began else ",")
        print("  " + json.dumps(row, indent=2, ensure_ascii=False).replace("\n", "\n  "), end="")
        began = True
    print("\n]" if began else "[]")
    return head


def _partition(one: dict[str, Any]) -> list[str]:
    batches = f"{one['batches']:,} in {one['first_batch']}-{one['last_batch']}"
    offsets = f"{one['first_offset']}-{one['last_offset']}"
    return [one["topic"], _place(one), f"{one['records']:,}", offsets, batches, one["last_appended"]]


def _record(one: dict[str, Any]) -> list[str]:
    return [one["topic"], _place(one), *(_text(one[name]) for name in ("offset", "batch", "timestamp", "id"))]


def _place(one: dict[str, Any]) -> str:
    return f"{one['partition']} of epoch {one['epoch']}" if one["epoch"] else str(one["partition"])


def show(found: dict[str, Any]) -> None:
    """An answer's rows, how many there are, and of which release and position."""
    names = [column["name"] for column in found["columns"]]
    if names in LAID_OUT and len(found["rows"]) == 1:
        for line in _text(found["rows"][0][names[0]]).expandtabs().rstrip("\n").split("\n"):
            say(line)
    else:
        show_rows(names, ([_text(row[name]) for name in names] for row in found["rows"]))
    count = len(found["rows"])
    released = f", release {found['release']}" if found["release"] is not None else ""
    position = "".join(f", {topic} batch {batch}" for topic, batch in found.get("position", {}).items())
    tell(f"{count:,} row{'' if count == 1 else 's'}{released}{position}")


def tell_freshness(found: dict[str, Any]) -> None:
    """Which tables do not keep up, or that nobody knows."""
    for one in found.get("stalled", ()):
        tell((f"{one['table']} is not up to date: {one['why']}", "yellow"))
    if missing := found.get("no_report"):
        tell((f"{missing['why']}; see `twinlake status`", "yellow"))


def _tell_moment(as_of: dict[str, Any]) -> None:
    """Which moment it was, so that the same can be asked again, and what was not read but computed."""
    position = ", ".join(f"{topic} batch {batch}" for topic, batch in as_of["position"].items())
    tell(f"as of release {as_of['release']}" + (f", {position}" if position else ""))
    for one in as_of["computed"]:
        tell((f"{one['table']} was computed from the log: {one['why']}", "yellow"))


def _text(value: Any) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
