"""Owns what a test file says, as data: its cases, and of each the records, the rows and what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from twinlake.base.errors import near
from twinlake.kinds.dependencies import upstream_tables, upstream_topics
from twinlake.kinds.kind import Kind
from twinlake.unit_tests.source import Entry, Part, read

ENDING = ".test.yaml"
MISNAMED = ".test.yml"
"""What is meant to be such a file, and would be passed over."""
_KEYS = ("records", "tables", "rows", "late")


@dataclass(frozen=True)
class Case:
    """One test of a table. Its parts are typed when it runs: the engine says which columns there are."""

    table: str
    name: str
    part: Entry
    records: Mapping[str, list[Part]]
    """By topic, each record as it is written; a topic of the table that is not named has none."""
    tables: Mapping[str, Entry]
    """Instead of records, by table: the rows that it shows."""
    rows: list[Part]
    late: list[Part] | None
    """None where nothing is said of what came late."""

    @property
    def file(self) -> Path:
        return self.part.file

    @property
    def line(self) -> int:
        return self.part.key.line

    @property
    def title(self) -> str:
        """What names it among all tests."""
        return f"{self.table}: {self.name}"


def table_of(file: Path) -> str:
    """The table that a file tests, by its name."""
    return file.name.removesuffix(ENDING).removesuffix(MISNAMED)


def cases(file: Path, tables: Mapping[str, Kind]) -> list[Case]:
    """What is in the file of a table that is among these; TestMistake for anything that it cannot mean."""
    table = tables[table_of(file)]
    entries = read(file).known(("cases",), "a test file")
    if "cases" not in entries:
        raise read(file).wrong("it has no cases", "write `cases:`, and below it a name for each case")
    found = [_case(table, tables, name, part) for name, part in entries["cases"].mapping("cases").items()]
    if not found:
        raise entries["cases"].wrong("it has no cases", "write one below `cases:`, by its name")
    return found


def _case(table: Kind, tables: Mapping[str, Kind], name: str, part: Entry) -> Case:
    entries = part.known(_KEYS, "a case")
    if "rows" not in entries:
        raise part.key.wrong("it does not say which rows are expected", "write `rows:`; `rows: []` for none")
    if not {"records", "tables"} & set(entries):
        raise part.key.wrong("it gives neither records nor rows of tables", "write `records:`, by topic")
    upstream = upstream_tables(table, tables)
    given = entries["tables"].mapping("tables") if "tables" in entries else {}
    for one, entry in given.items():
        if one not in upstream:
            raise entry.key.wrong(f"{table.name} reads no table {one!r}{near(one, upstream)}")
        for reader in (table, *(tables[name] for name in upstream)):
            if one in reader.reads and reader.reads_states:
                why = f"{reader.name} reads more of {one} than its rows"
                raise entry.key.wrong(
                    why, f"give records of {', '.join(upstream_topics(tables[one], tables))}"
                )
    topics = upstream_topics(table, tables)
    records = entries["records"].mapping("records") if "records" in entries else {}
    for one, entry in records.items():
        if one not in topics:
            raise entry.key.wrong(f"{table.name} is made of no topic {one!r}{near(one, topics)}")
    late = entries.get("late")
    if late is not None and table.late("") is None:
        raise late.key.wrong(f"there is no view {table.name}_late: the table has no windows", "leave it out")
    return Case(
        table=table.name,
        name=name,
        part=part,
        records={one: entry.items(f"topic {one}") for one, entry in records.items()},
        tables=given,
        rows=entries["rows"].items("rows"),
        late=None if late is None else late.items("late"),
    )
