"""Which schema of each topic a version was made with, for versions of before that was stored beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import structlog

from twinlake.base.location import Location
from twinlake.kinds.all import from_json
from twinlake.kinds.analysis import problems
from twinlake.kinds.kind import Kind, is_stored
from twinlake.lake.catalog.version import Version, load, stored_versions, version_file
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.topics.contract import JSON
from twinlake.topics.earlier import MadeWith, made_with
from twinlake.topics.topic import Topic

journal = structlog.get_logger(__name__)


def store_schemas(lake: Location, logs: Mapping[str, Log]) -> None:
    """Stores with each version, retired ones too, the newest schemas that resolve its definition, where none
    are stored. One that none resolves stays as it is, and says so when it is opened."""
    for version in list(stored_versions(lake)):
        if not set(version.topics) <= logs.keys():
            continue
        if all(stored_schema(version, logs[name].topic) is not None for name in version.topics):
            continue
        found, why = None, ""
        try:
            found = next(_resolving(lake, version, logs), None)
        except Exception as error:  # what it reads is damaged, or no longer understood
            why = str(error)
        if found is None:
            journal.warning("no schema of its topics resolves the version", version=str(version), why=why)
            continue
        replace(version, schemas={name: made_with(topic) for name, topic in found.items()}).save(lake)


def stored_schema(version: Version, topic: Topic) -> MadeWith | None:
    """What is stored of the schema that the version was made with; None where nothing is. JSON's fields were
    not stored before, but the number of a file that it has not."""
    made = version.schemas.get(topic.name)
    return None if topic.contract.format == JSON and isinstance(made, int) else made


def _resolving(lake: Location, version: Version, logs: Mapping[str, Log]) -> Iterator[dict[str, Topic]]:
    known = dict(upstream(lake, version))
    definition = from_json(version.definition).bound(known)
    numbers = [range(logs[name].topic.newest.number, 0, -1) for name in version.topics]
    for chosen in product(*numbers):
        of = dict(zip(version.topics, chosen, strict=True))
        topics = {name: _then(logs[name].topic, number) for name, number in of.items()}
        whole = all(
            number == logs[name].topic.newest.number == 1 and logs[name].topic.contract.format != JSON
            for name, number in of.items()
        )
        if whole or _fits(lake, version, definition, topics, known, logs):
            yield topics


def _then(topic: Topic, number: int) -> Topic:
    return replace(topic, schemas=topic.schemas[:number])


def _fits(
    lake: Location,
    version: Version,
    definition: Kind,
    topics: Mapping[str, Topic],
    known: Mapping[str, Kind],
    logs: Mapping[str, Log],
) -> bool:
    """Whether the definition is sound over these topics, and makes the columns that its table has."""
    spark = next(iter(logs.values())).spark
    try:
        if next(problems(definition, topics, spark, known), None) is not None:
            return False
    except Exception:  # what it reads is not there
        return False
    path = version.path(lake)
    if not is_stored(definition) or not delta.exists(path):
        return True
    (name,) = definition.inputs
    rows = logs[name].as_of_schema(made_with(topics[name])).no_rows()
    made = {column.name: column.dataType for column in definition.partial(rows).schema}
    there = {column.name: column.dataType for column in delta.rows(spark, path).schema}
    return all(there.get(column) == type_ for column, type_ in made.items())


def upstream(lake: Location, version: Version) -> Iterator[tuple[str, Kind]]:
    """What it reads, and what that reads, bound."""
    for table, name in version.reads.items():
        read = load(version_file(lake, table, name))
        below = dict(upstream(lake, read))
        yield from below.items()
        yield table, from_json(read.definition).bound(below)
