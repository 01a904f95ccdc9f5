"""Served: a version as the views of readers need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinlake.base.errors import DamagedError
from twinlake.base.location import Location
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog.version import Version
from twinlake.reading.followed import Looked


@dataclass(frozen=True, kw_only=True)
class Served:
    """One version as the views need it: its SELECT, and by topic each place that holds a watermark.

    A version that reads tables has a place for each of them: they may be at different positions of one topic.
    """

    version: Version
    definition: Kind | None
    """None where it is damaged."""
    sql: str
    states: str | None
    """What follows FROM to read its states, None for a view kind."""
    watermarks: Mapping[str, tuple[Location, ...]]
    late: str | None
    """The SELECT of what came late for its windows, where it has any."""
    damage: DamagedError | None = None

    @property
    def looked(self) -> Looked:
        """What look-ups need to know of it."""
        key = self.definition.view_keys if self.definition else ()
        return Looked(key=key, topics=tuple(self.watermarks) or self.version.topics)

    @property
    def shows_time(self) -> bool:
        if self.definition is None:
            return False
        return bool(self.definition.reads) or self.definition.timeless != self.definition.output
