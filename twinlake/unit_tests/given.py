"""Owns what a case gives, made ready for both engines: logs of its topics, and rows of tables, as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from twinlake.base.errors import TwinlakeError
from twinlake.definitions.without_spark import Typist
from twinlake.kinds.dependencies import upstream_tables, upstream_topics
from twinlake.kinds.kind import Kind
from twinlake.topics import record_id
from twinlake.topics.topic import Topic
from twinlake.unit_tests import values
from twinlake.unit_tests.cases import Case
from twinlake.unit_tests.logs import Write, by_sql, table_rows, topic_log
from twinlake.unit_tests.records import FIRST, Record, records
from twinlake.unit_tests.source import Part
from twinlake.unit_tests.verdicts import judged
from twinlake.witness.question import Question, ReadTable, Rows, TopicLog
from twinlake.witness.rows import Evaluator

_NOTHING = Rows(files=(), columns=())


@dataclass(frozen=True)
class World:
    """What the tests of one run share: the project's tables, each bound to those it reads, its topics, and
    the engine."""

    tables: Mapping[str, Kind]
    topics: Mapping[str, Topic]
    engine: Evaluator

    def wrong(self, name: str) -> TwinlakeError | None:
        """What is wrong with a table's definition, or with one that it reads, that needs no Spark to be said:
        a misspelt name, say."""
        typist = Typist(topics=dict(self.topics), engine=self.engine)
        for one in (*reversed(upstream_tables(self.tables[name], self.tables)), name):
            if found := typist.typed(self.tables[one]).wrong:
                return found[0]
        return None


@dataclass(frozen=True)
class Given:
    """A case's records by topic, their logs, and the rows of those tables that it gives rows of. It grows."""

    records: dict[str, list[Record]]
    logs: dict[str, TopicLog]
    shown: dict[str, Rows]
    """What a table shows that another one reads is evaluated once."""


def given(world: World, case: Case, folder: Path) -> Given:
    """Reads and fills the records, and decides their verdicts. TestMistake for what the case cannot mean."""
    made = Given({}, {}, {})
    for name in upstream_topics(world.tables[case.table], world.tables):
        add_topic(world, made, name, case.records.get(name, []), folder, by_sql(world.engine.copy))
    for name in case.tables:
        made.shown[name] = _rows(world, case, name, folder)
    return made


def add_topic(
    world: World, made: Given, name: str, parts: list[Part], folder: Path, write: Write
) -> None:  # fmt: skip
    """Adds the records of a topic, with their verdicts, and their log in this folder."""
    topic = world.topics[name]
    made.records[name] = judged(topic, records(topic, parts))
    made.logs[name] = topic_log(topic, made.records[name], folder, write)


def question(world: World, name: str, made: Given, folder: Path) -> Question:
    """What the witness is asked about a table: for the tables that it reads, what these show is evaluated."""
    table = world.tables[name]
    reads = {}
    for one in table.reads:
        shown = None if table.reads_states else _shown(world, one, made, folder)
        reads[one] = ReadTable(definition=world.tables[one].to_json(), shown=shown)
    topics = {one: made.logs[one] for one in upstream_topics(table, world.tables)}
    return Question(definition=table.to_json(), topics=topics, shown=_NOTHING, reads=reads)


def _shown(world: World, name: str, made: Given, folder: Path) -> Rows:
    if name not in made.shown:
        asked = question(world, name, made, folder)
        made.shown[name] = world.engine.write(asked, str(folder / f"{name}.rows.parquet"))
    return made.shown[name]


def _rows(world: World, case: Case, name: str, folder: Path) -> Rows:
    """What the case says that a table shows. Which columns of which types these are, an empty one tells."""
    empty = {
        one: topic_log(world.topics[one], [], folder, by_sql(world.engine.copy))
        for one in upstream_topics(world.tables[name], world.tables)
    }
    made = Given({}, empty, {})
    types = world.engine.found(question(world, name, made, folder)).types
    rows = []
    for number, part in enumerate(case.tables[name].items(f"table {name}")):
        row = {
            column: values.read(entry, values.known(column, types, entry.key, f"table {name}"), column)
            for column, entry in part.mapping(f"a row of {name}").items()
        }
        record = {"_epoch": 0, "_partition": 0, "_offset": number, record_id.TIMESTAMP: FIRST}
        rows.append({**{key: value for key, value in record.items() if key in types}, **row})
    return table_rows(rows, types, folder / f"{name}.given.parquet", by_sql(world.engine.copy))
