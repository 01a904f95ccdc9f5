"""View names: which tables would have the name of a view that readers have without a definition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twinlake.base.errors import DefinitionError
from twinlake.kinds.kind import Kind
from twinlake.lake.log import topic_views
from twinlake.reading.views import late_name


def refused_tables(tables: Iterable[Kind], topics: Iterable[str]) -> Iterator[DefinitionError]:
    """The tables that would hide the view of a topic, or of what came late for another table; names differ by
    more than case."""
    named = {table.name.lower(): table for table in tables}
    for table in named.values():
        taken = named.get(late_name(table.name).lower())
        if taken is not None and table.late("") is not None:
            why = f"it has the name of the view of what came late for {table.name}"
            yield taken.error(why, "rename one of them")
    for topic in topics:
        for name in topic_views.names(topic):
            if name.lower() in named:
                why = f"it has the name of a view that every release has of topic {topic}, {name}"
                yield named[name.lower()].error(why, "rename it")
