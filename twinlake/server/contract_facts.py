"""Contract facts: what readers get of contracts: words and the classification of every view's columns.

A column has the classification that its own contract states (`classification` of a property), or else those
of all columns that it is made of. All versions of a table count, so past tables are in it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import structlog

from twinlake.base.errors import TwinlakeError
from twinlake.kinds.all import from_json
from twinlake.kinds.late import FINAL
from twinlake.kinds.windows import END, START
from twinlake.lake.catalog import described
from twinlake.lake.catalog.described import Classes
from twinlake.lake.catalog.release_log import Release, releases
from twinlake.lake.catalog.version import Version, versions_of
from twinlake.lake.log import topic_views
from twinlake.lake.open_lake import OpenLake
from twinlake.reading.views import late_name
from twinlake.topics import record_id
from twinlake.topics.contract_words import Words, contract_words
from twinlake.topics.topic import Topic, contract_file

journal = structlog.get_logger(__name__)
Of = dict[str, list[str]]
"""By column."""
_OF_LATE = (START, END, "late", "discarded", "first_arrived", "last_arrived")
_OF_RECORD = (*record_id.KEY, record_id.TIMESTAMP, record_id.INGESTED_AT, "_tombstone")
_OF_VERDICT = ("epoch", "partition", "offset", "timestamp", "verdict", "contract", "replay", "batch",
               "first_verdict", "first_contract")  # fmt: skip
_WHOLE = ("_key", topic_views.VALUE)
_WHOLE_REFUSED = ("key", "value", "reasons", "first_reasons")
"""Hold any field of a record, or tell of its values."""


class ContractFacts:
    """Contracts are read at the start, after a reload and a release, and when there is another topic."""

    def __init__(self) -> None:
        self._of: object = None

    def publish(self, lake: OpenLake) -> None:
        """What keeps it from being published is logged: readers can read without words, and who sees anything
        masked by classification sees less."""
        try:
            described.publish(lake.path, lake.settings.sources)
            described.publish_classes(lake.path, classification(lake))
        except Exception:
            journal.exception("readers do not see what contracts say")

    def look(self, lake: OpenLake, live: Release | None) -> None:
        """Publish for topics that are new, or have other columns, and for another release."""
        topics = {name: len(topic.columns) for name, topic in lake.topics.active().items()}
        seen = (topics, live.number if live else 0)
        if seen != self._of:
            self._of = seen
            self.publish(lake)


def classification(lake: OpenLake) -> Classes:
    """By view, what each of its columns is; see `lake/catalog/described.py`."""
    topics = lake.topics.active()
    words = _words(lake)
    found: dict[str, Of] = {}
    for name, topic in topics.items():
        found |= _of_topic(topic, words(name))
    tables = _Tables(lake, topics, words)
    for table in _table_names(lake):
        found[table] = tables.of(table)
        found[late_name(table)] = _public(_OF_LATE)
    return found


def _of_topic(topic: Topic, words: Words) -> dict[str, Of]:
    every = sorted(set(words.classes.values()))
    fields = {column: _stated(words, column) for column, _ in topic.columns}
    valid, refused, replayed = topic_views.names(topic.name)
    about = _public(_OF_VERDICT) | dict.fromkeys(_WHOLE_REFUSED, every)
    shown = fields | _public(_OF_RECORD) | dict.fromkeys(_WHOLE, every)
    return {valid: shown, refused: about, replayed: about}


def _public(columns: Iterable[str]) -> Of:
    return {column: [] for column in columns}


def _stated(words: Words, column: str) -> list[str]:
    return [words.classes[column]] if column in words.classes else []


def _words(lake: OpenLake) -> Callable[[str], Words]:
    kept: dict[str, Words] = {}

    def of(name: str) -> Words:
        if name not in kept:
            kept[name] = contract_words(contract_file(name, *lake.settings.sources))
        return kept[name]

    return of


def _table_names(lake: OpenLake) -> Iterable[str]:
    released = {table for one in releases(lake.path) for table in one.tables}
    return sorted(released | {one.table for one in lake.versions.living()})


class _Tables:
    """Of all versions of a table together: a column is what it is in any of them."""

    def __init__(self, lake: OpenLake, topics: Mapping[str, Topic], words: Callable[[str], Words]) -> None:
        self._lake, self._topics, self._words = lake, topics, words
        self._known: dict[str, Of] = {}

    def of(self, table: str) -> Of:
        if table not in self._known:
            versions = versions_of(self._lake.path, table)
            found: dict[str, set[str]] = {FINAL: set()} if versions else {}
            for version in versions:
                for column, classes in self._of_version(version):
                    found.setdefault(column, set()).update(classes)
            self._known[table] = {column: sorted(classes) for column, classes in found.items()}
        return self._known[table]

    def _of_version(self, version: Version) -> Iterator[tuple[str, list[str]]]:
        words = self._words(version.table)
        try:
            columns = from_json(version.definition).output
        except TwinlakeError:  # nobody knows any more what its columns are
            return
        inherited = self._inherited(version)
        for column in columns:
            stated = _stated(words, column)
            if stated:
                yield column, stated
            elif column in inherited:
                yield column, inherited[column]

    def _inherited(self, version: Version) -> Mapping[str, list[str]]:
        """By column; without what is not known, of which nobody says that it is public."""
        of_inputs = {name: self._of_input(name) for name in (*version.topics, *version.reads)}
        are_known = all(of_inputs.values())
        if are_known and not any(any(columns.values()) for columns in of_inputs.values()):
            return _public(from_json(version.definition).output)
        from twinlake.lineage import of_version  # it parses SQL

        made = of_version.as_known(self._lake.path, version, self._topics)
        found = {}
        for column, sources in made.columns.items():
            of_each = [of_inputs.get(source.owner, {}).get(source.column) for source in sources]
            if None not in of_each:
                found[column] = sorted({one for classes in of_each for one in classes or ()})
        return found

    def _of_input(self, name: str) -> Of:
        if name in self._topics:
            topic = self._topics[name]
            return _of_topic(topic, self._words(name))[topic_views.names(name)[0]]
        return self.of(name)
