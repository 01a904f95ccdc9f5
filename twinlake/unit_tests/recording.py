"""Writes a case of records that a lake has: their fields, and how Kafka had them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError
from twinlake.base.files import replace_file, shown_path
from twinlake.topics.topic import Topic
from twinlake.unit_tests.cases import ENDING, cases
from twinlake.unit_tests.given import World
from twinlake.unit_tests.source import TestMistake
from twinlake.unit_tests.writing import ABOUT, INDENT, case_text
from twinlake.witness.database import connect
from twinlake.witness.rows import value_of
from twinlake.witness.types import text_literal

RecordId = tuple[int, int, int]
"""(epoch, partition, offset)"""


def records_of(topic: Topic, files: Sequence[str], ids: Iterable[RecordId]) -> list[dict[str, Any]]:
    """These records of the topic's log, as a case writes them, in the order in which Kafka had them. Fields
    without a value are left out. NotFoundError where the log's files have none of them, TwinlakeError where
    they cannot be read."""
    wanted = ", ".join(f"({epoch}, {partition}, {offset})" for epoch, partition, offset in sorted(set(ids)))
    condition = f'(epoch, "partition", "offset") IN ({wanted})' if wanted else "false"
    return _read(topic, files, condition)


def newest_of(topic: Topic, files: Sequence[str], most: int) -> list[dict[str, Any]]:
    """The same of so many records, those that Kafka had last."""
    return _read(topic, files, "true", most)


def _read(
    topic: Topic, files: Sequence[str], condition: str, most: int | None = None
) -> list[dict[str, Any]]:
    nothing = NotFoundError(f"no record of topic {topic.name} is known", "its log has none", "produce some")
    if not files:
        raise nothing
    listed = ", ".join(map(text_literal, files))
    order = '"timestamp", epoch, "partition", "offset"'
    newest = "" if most is None else f' ORDER BY {order.replace(",", " DESC,")} DESC LIMIT {most}'
    connection = connect()
    try:
        found = connection.execute(
            'SELECT event, epoch, "partition", "timestamp" FROM (SELECT * FROM'
            f" read_parquet([{listed}], union_by_name = true, hive_partitioning = false)"
            f" WHERE {condition} AND NOT coalesce(replay, false){newest}) ORDER BY {order}"
        ).fetchall()
    except duckdb.Error as error:
        why = str(error).strip().splitlines()[0]
        remedy = "try again: the lake server may just have put larger files in their place"
        raise TwinlakeError(f"the log of topic {topic.name} cannot be read", why, remedy) from error
    finally:
        connection.close()
    if not found:
        raise nothing
    return [_written(topic, *row) for row in found]


def _written(topic: Topic, event: Any, epoch: int, partition: int, timestamp: Any) -> dict[str, Any]:
    beside = {"_epoch": epoch, "_partition": partition}
    written = {name: value for name, value in beside.items() if value}
    at = value_of(timestamp)
    if event is None:
        return {"_tombstone": True, **written, "_timestamp": at}
    for field in topic.newest.fields:
        kept = next((name for name in field.names if event.get(name) is not None), None)
        if kept is not None:
            written[field.name] = value_of(event[kept])
    return written if written.get(topic.contract.event_time or "") == at else {**written, "_timestamp": at}


def add_case(
    world: World, table: str, folder: Path, name: str, records: Mapping[str, list[dict[str, Any]]]
) -> Path:
    """Adds the case to the table's test file, which is made where there is none. UsageError where it has a
    case of this name already, or is written so that nothing can be added at its end."""
    files = sorted(folder.rglob(f"{table}{ENDING}")) or [folder / f"{table}{ENDING}"]
    text, indent = f"{ABOUT}\ncases:\n", INDENT
    if files[0].exists():
        known = cases(files[0], world.tables)
        indent = known[0].part.key.column - 1
        if any(case.name == name for case in known):
            what = f"{shown_path(files[0])} has a case {name!r} already"
            raise UsageError(what, "it was recorded before", "rename it, or remove it")
        text = files[0].read_text(encoding="utf-8").rstrip("\n") + "\n\n"
    text += _shifted(case_text(world, table, name, records), indent - INDENT)
    _refuse_unreadable(world, files[0], text, name)
    replace_file(files[0], text)
    return files[0]


def _refuse_unreadable(world: World, file: Path, text: str, name: str) -> None:
    """UsageError where the text is no test file with this case: that of before is in `{}`, for example."""
    with TemporaryDirectory() as folder:
        tried = Path(folder) / file.name
        tried.write_text(text, encoding="utf-8")
        try:
            if any(case.name == name for case in cases(tried, world.tables)):
                return
        except TestMistake:
            pass
    what, remedy = f"no case can be added to {shown_path(file)}", "write its cases so, or move them elsewhere"
    raise UsageError(what, "its cases are not the last of it, each on lines of its own", remedy)


def _shifted(text: str, by: int) -> str:
    """With so many blanks more at the start of each line that has something, or fewer."""
    lines = text.splitlines(keepends=True)
    return "".join(line if not line.strip() else " " * by + line if by > 0 else line[-by:] for line in lines)
