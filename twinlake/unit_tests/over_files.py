"""Owns what definitions make of records in files: those of a project, and those that it had at a commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from twinlake.base.errors import TwinlakeError
from twinlake.config.project import Project
from twinlake.definitions.loader import Loaded
from twinlake.definitions.premises import of_topic, premises
from twinlake.kinds.dependencies import upstream_topics
from twinlake.kinds.kind import Kind
from twinlake.topics.topic import Topic, load_topic
from twinlake.unit_tests.arrow_rows import write
from twinlake.unit_tests.given import Given, World, add_topic, question
from twinlake.unit_tests.project_tests import bound
from twinlake.unit_tests.records import Record
from twinlake.unit_tests.sample_files import with_null, without
from twinlake.unit_tests.source import Part
from twinlake.witness.rows import Evaluator, Found

BEFORE, NOW = 0, 1
"""The sides."""


@dataclass(frozen=True, kw_only=True)
class Defined:
    """Definitions that are sound, each bound to those that it reads, and the files of their topics."""

    tables: Mapping[str, Kind]
    sources: Sequence[Project]
    wrong: Sequence[TwinlakeError] = ()
    topics: dict[str, Topic] = field(default_factory=dict)
    """Grows: a topic is read when it is asked for."""

    @classmethod
    def of(cls, loaded: Loaded, sources: Sequence[Project]) -> Defined:
        tables, wrong = bound({table.name: table for table in loaded.tables})
        return cls(tables=tables, sources=sources, wrong=(*loaded.wrong, *wrong))

    def topics_of(self, table: str) -> dict[str, Topic]:
        """Those that decide what it shows. ContractError for one whose files are wrong."""
        for name in (names := upstream_topics(self.tables[table], self.tables)):
            if name not in self.topics:
                self.topics[name] = load_topic(name, *self.sources)
        return {name: self.topics[name] for name in names}

    def meaning(self, table: str) -> str:
        """The name of all that decides what the table shows of records: under an equal one it is the same."""
        kind = self.tables[table]
        upstream = {name: self.meaning(name) for name in kind.reads}
        return premises(kind, self.topics_of(table), self.tables, upstream, {})


class OverFiles:
    """What the definitions of both sides show of the same records; what was read or shown once is kept."""

    def __init__(
        self, sides: tuple[Defined, Defined], records: Mapping[str, list[Part]], engine: Evaluator
    ) -> None:
        self.sides, self._records, self._engine = sides, records, engine
        self._made = (Given({}, {}, {}), Given({}, {}, {}))
        self._folders = tuple(Path(mkdtemp(dir=engine.folder)) for _ in sides)

    def shown(self, side: int, table: str) -> Found:
        """Refused where the witness does not evaluate it, TestMistake for a record that the topic cannot
        have."""
        defined, made = self.sides[side], self._made[side]
        for name in defined.topics_of(table):
            if name not in made.logs:
                self._read(side, name)
        world = World(defined.tables, defined.topics, self._engine)
        return self._engine.sized(question(world, table, made, self._folders[side]))

    def seen(self, side: int, table: str) -> dict[str, list[Record]]:
        """By topic the records of a table that was shown, with their verdicts."""
        return {name: self._made[side].records[name] for name in self.sides[side].topics_of(table)}

    def verdicts(self, side: int, table: str) -> Counter[str]:
        """How many of them have which."""
        return Counter(one.verdict for records in self.seen(side, table).values() for one in records)

    def _read(self, side: int, name: str) -> None:
        """Makes the log of a topic; that of the other side is the same where the topic's files are. A field
        that the other side's topic alone has is left out, as whoever reads JSON leaves it out; one that this
        side alone requires is as missing as it is there."""
        defined, made, there = self.sides[side], self._made[side], self._made[1 - side]
        topic, other = defined.topics[name], self.sides[1 - side].topics.get(name)
        if other is not None and name in there.logs and of_topic(other) == of_topic(topic):
            made.records[name], made.logs[name] = there.records[name], there.logs[name]
            return
        unknown = set() if other is None else _fields(other) - _fields(topic)
        missing = set() if other is None else _fields(other) & _required(topic) - _required(other)
        parts = [with_null(without(part, unknown), missing) for part in self._records.get(name, ())]
        world = World(defined.tables, defined.topics, self._engine)
        add_topic(world, made, name, parts, self._folders[side], write)


def _fields(topic: Topic) -> set[str]:
    return {field.name for field in topic.newest.fields}


def _required(topic: Topic) -> set[str]:
    return {column.name for column in topic.contract.columns if column.required}
