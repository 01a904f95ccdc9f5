"""Writes test files: a first one for a table, and cases of given records; the witness finds the rows."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twinlake.kinds.dependencies import upstream_topics
from twinlake.unit_tests.cases import ENDING, cases
from twinlake.unit_tests.fill import Filler
from twinlake.unit_tests.given import World, given, question
from twinlake.unit_tests.records import FIRST, VERDICT
from twinlake.unit_tests.values import shown
from twinlake.witness.refused import Refused

Rows = Sequence[Mapping[str, Any]]
"""Records or rows, each with the values that are written."""
ABOUT = "# Records in, rows out: docs/unit-tests.md of Twinlake says what else a case can say."
INDENT = 2
"""Blanks before the name of a case."""
_WIDEST = 100
_PLAIN = re.compile(r"[A-Za-z/_][A-Za-z0-9_./-]*|\d[A-Za-z0-9_.:-]*")
_NULLS = ("null", "Null", "NULL")
_STARTED = 2
"""Records of each topic in a first test."""


def first_test(world: World, table: str) -> str:
    """A file with one case: a few valid records of each topic, and the rows that the table shows of them."""
    records = first_records(world, table)
    return f"{ABOUT}\ncases:\n{case_text(world, table, 'a first case, to go on from', records)}"


def first_records(world: World, table: str) -> dict[str, Rows]:
    """By topic, a few valid records, with the fields that they need."""
    records: dict[str, Rows] = {}
    for name in upstream_topics(world.tables[table], world.tables):
        topic = world.topics[name]
        filler, required = (
            Filler(topic),
            {column.name for column in topic.contract.columns if column.required},
        )
        written = []
        for number in range(1, _STARTED + 1):
            filled = filler.event(number, {}, FIRST + timedelta(minutes=number))
            shown_fields = required - {topic.contract.unique} if not topic.contract.change_data else set()
            written.append({field: value for field, value in filled.items() if field in shown_fields})
        records[name] = written
    return records


def case_of_records(records: Mapping[str, Rows]) -> str:
    """A file with one case of these records, which expects nothing of them."""
    return "cases:\n" + _case("sample", records, [])


def case_text(world: World, table: str, name: str, records: Mapping[str, Rows]) -> str:
    """A case of these records, below `cases:`, with their verdicts where they are not valid, and with the
    rows that the witness finds."""
    remark = ""
    with TemporaryDirectory(dir=world.engine.folder) as folder:
        file = Path(folder) / f"{table}{ENDING}"
        file.write_text("cases:\n" + _case(name, records, []), encoding="utf-8")
        (case,) = cases(file, world.tables)
        made = given(world, case, Path(folder))
        judged = {
            topic: [
                {**written, **({} if one.verdict == one.expected else {VERDICT: one.verdict})}
                for written, one in zip(records[topic], made.records[topic], strict=True)
            ]
            for topic in records
        }
        try:
            found = world.engine.found(question(world, table, made, Path(folder)))
            names = [column for column in found.types if not column.startswith("_")]
            rows = [dict(zip(found.types, row, strict=True)) for row in found.rows]
            listed = [{column: row[column] for column in names} for row in rows]
        except Refused as error:
            remark, listed = f"    # write the rows: the witness does not evaluate {error.expression}\n", []
    return _case(name, judged, listed, remark)


def _case(name: str, records: Mapping[str, Rows], rows: Rows, remark: str = "") -> str:
    lines = [f"  {_scalar(name, is_key=True)}:", "    records:"]
    if not records:
        lines[-1] += " {}"
    for topic, listed in records.items():
        lines += [f"      {topic}:" if listed else f"      {topic}: []", *_listed(listed, "        ")]
    lines += ["    rows:" if rows else "    rows: []", *_listed(rows, "      ")]
    return "\n".join(lines) + "\n" + remark


def _listed(rows: Rows, indent: str) -> list[str]:
    lines = []
    for row in rows:
        short = f"{indent}- {_flow(row)}"
        if len(short) <= _WIDEST:
            lines.append(short)
            continue
        parts = [f"{_scalar(name, is_key=True)}: {_flow(value)}" for name, value in row.items()]
        lines += [f"{indent}{'- ' if number == 0 else '  '}{part}" for number, part in enumerate(parts)]
    return lines


def _flow(value: Any) -> str:
    """On one line."""
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{_scalar(key, is_key=True)}: {_flow(one)}" for key, one in value.items()) + "}"
        )
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    return _scalar(value)


def _scalar(value: Any, *, is_key: bool = False) -> str:
    if isinstance(value, bytes):
        return f"!!binary {json.dumps(base64.b64encode(value).decode())}"
    if isinstance(value, float) and value != value:
        return ".nan"
    if isinstance(value, float) and abs(value) == float("inf"):
        return ".inf" if value > 0 else "-.inf"
    if not isinstance(value, str):
        return shown(value)
    is_name = is_key and re.fullmatch(r"[A-Za-z][A-Za-z0-9_ ,.-]*[A-Za-z0-9.]", value)
    is_plain = is_name or (_PLAIN.fullmatch(value) and not value.endswith(":"))
    return value if is_plain and value not in _NULLS else json.dumps(value, ensure_ascii=False)
