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
from twinlake.definitions.premises import premises
from twinlake.kinds.dependencies import upstream_topics
from twinlake.kinds.kind import Kind
from twinlake.topics.topic import Topic, load_topic
from twinlake.unit_tests.given import Given, World, add_topic, question
from twinlake.unit_tests.project_tests import bound
from twinlake.unit_tests.records import Record
from twinlake.unit_tests.sample_files import without
from twinlake.unit_tests.source import Part
from twinlake.witness.rows import Evaluator, Found


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
    """What these definitions show of these records; what was read or shown once is kept."""

    def __init__(
        self, defined: Defined, other: Defined, records: Mapping[str, list[Part]], engine: Evaluator
    ) -> None:
        self._defined, self._other, self._records = defined, other, records
        self._world = World(defined.tables, defined.topics, engine)
        self._made, self._folder = Given({}, {}, {}), Path(mkdtemp(dir=engine.folder))

    def shown(self, table: str) -> Found:
        """Refused where the witness does not evaluate it, TestMistake for a record that the topic cannot
        have. A field that the other side's topic alone has is left out, as whoever reads JSON leaves it
        out."""
        for name, topic in self._defined.topics_of(table).items():
            if name not in self._made.logs:
                unknown = self._fields_elsewhere(name, topic)
                parts = [without(part, unknown) for part in self._records.get(name, ())]
                add_topic(self._world, self._made, name, parts, self._folder)
        return self._world.engine.sized(question(self._world, table, self._made, self._folder))

    def seen(self, table: str) -> dict[str, list[Record]]:
        """By topic the records of a table that was shown, with their verdicts."""
        return {name: self._made.records[name] for name in self._defined.topics_of(table)}

    def verdicts(self, table: str) -> Counter[str]:
        """How many of them have which."""
        return Counter(one.verdict for records in self.seen(table).values() for one in records)

    def _fields_elsewhere(self, name: str, topic: Topic) -> set[str]:
        other = self._other.topics.get(name)
        fields = set() if other is None else {field.name for field in other.newest.fields}
        return fields - {field.name for field in topic.newest.fields}
