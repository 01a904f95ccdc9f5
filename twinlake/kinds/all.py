"""The only list of kinds, and those that installed packages bring (entry points `twinlake.kinds`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinlake.kinds import plugins
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.as_of_join import AsOfJoin
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.history import History
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.kind import Kind
from twinlake.kinds.latest import Latest
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.trailing import Trailing
from twinlake.kinds.union import Union

_LISTED: tuple[type[Kind], ...] = (
    Aggregate,
    Sessions,
    Latest,
    TopRows,
    History,
    Trailing,
    Events,
    IntervalJoin,
    AsOfJoin,
    Rolling,
    Union,
    Derived,
)
KINDS: dict[str, type[Kind]] = plugins.joined("twinlake.kinds", _LISTED)
"""By the name in JSON."""


def from_json(data: Mapping[str, Any]) -> Kind:
    """The definition that `to_json` came from; unknown kinds and keys are refused by name."""
    kind = KINDS.get(str(data.get("kind")))
    if kind is None:
        raise plugins.unknown("table", data.get("kind"), KINDS)
    return kind.from_json(data)
