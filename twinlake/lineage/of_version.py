"""What each column of a version's view is made of, and which columns of others are made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import structlog

from twinlake.base.location import Location
from twinlake.kinds.all import from_json
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog.made_with import upstream
from twinlake.lake.catalog.version import Version
from twinlake.lineage.columns import Made, Source, made_of
from twinlake.topics.topic import Topic

journal = structlog.get_logger(__name__)
UNKNOWN = Made({}, ())


def made(lake: Location, version: Version, topics: Mapping[str, Topic]) -> tuple[Kind, Made]:
    """The version's definition, which knows what it reads, and its columns; KeyError where a topic is not
    among these."""
    read = dict(upstream(lake, version))
    table = from_json(version.definition).bound(read)
    columns = {name: [column for column, _ in topics[name].columns] for name in table.inputs}
    return table, made_of(table, columns | {name: read[name].output for name in table.reads})


def as_known(lake: Location, version: Version, topics: Mapping[str, Topic]) -> Made:
    """The columns alone; none of a version that cannot be followed, for a page that has more to say of it."""
    try:
        return made(lake, version, topics)[1]
    except Exception as error:  # a topic that is not open, a definition that is no longer understood
        journal.warning("what a version is made of is not known", version=str(version), why=str(error))
        return UNKNOWN


def used_by(
    of: str, versions: Iterable[Version], lake: Location, topics: Mapping[str, Topic]
) -> dict[str, tuple[Source, ...]]:
    """By column of this topic or table, the columns of these versions' tables that are made of it."""
    found: dict[str, list[Source]] = {}
    for version in versions:
        if of not in (*version.reads, *version.topics):
            continue
        for column, sources in as_known(lake, version, topics).columns.items():
            for source in sources:
                if source.owner == of:
                    found.setdefault(source.column, []).append(Source(version.table, column))
    return {column: tuple(users) for column, users in found.items()}
