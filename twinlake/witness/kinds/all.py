"""The only list of kinds that the witness knows."""

from __future__ import annotations

from twinlake.witness.kinds.aggregate import aggregate
from twinlake.witness.kinds.as_of_join import as_of_join
from twinlake.witness.kinds.derived import derived
from twinlake.witness.kinds.events import events
from twinlake.witness.kinds.history import history
from twinlake.witness.kinds.interval_join import interval_join
from twinlake.witness.kinds.latest import latest
from twinlake.witness.kinds.rolling import rolling
from twinlake.witness.kinds.sessions import sessions
from twinlake.witness.kinds.top_rows import top_rows
from twinlake.witness.kinds.trailing import trailing
from twinlake.witness.kinds.union import union
from twinlake.witness.result import Kind

KINDS: dict[str, Kind] = {
    "events": events,
    "aggregate": aggregate,
    "sessions": sessions,
    "latest": latest,
    "top_rows": top_rows,
    "history": history,
    "trailing": trailing,
    "interval_join": interval_join,
    "as_of_join": as_of_join,
    "rolling": rolling,
    "union": union,
    "derived": derived,
}
"""By the name in JSON."""
