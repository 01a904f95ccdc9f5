"""The only list of measures, and those that installed packages bring (entry points `twinlake.measures`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from twinlake.kinds import plugins
from twinlake.kinds.definition import refuse_keys
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.extremes import Max, Min
from twinlake.kinds.measures.histogram import Histogram
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.picks import ArgMax, ArgMin, First, Last
from twinlake.kinds.measures.sets import CollectSet
from twinlake.kinds.measures.spread import Stddev, Variance
from twinlake.kinds.measures.totals import Avg, Sum

_LISTED: tuple[type[Measure], ...] = (
    Count, Sum, Min, Max, Avg, Variance, Stddev, First, Last, ArgMin, ArgMax, CountDistinct, Quantile,
    Histogram, TopK, CollectSet,
)  # fmt: skip
MEASURES: dict[str, type[Measure]] = plugins.joined("twinlake.measures", _LISTED)
"""By the name in JSON."""


def from_json(data: Mapping[str, Any]) -> Measure:
    """The measure that `to_json` came from; unknown kinds and keys are refused by name."""
    kind = MEASURES.get(str(data.get("kind")))
    if kind is None:
        raise plugins.unknown("measure", data.get("kind"), MEASURES)
    refuse_keys(data, {"kind", *(field.name for field in fields(kind))}, f"measure {kind.kind}")
    return kind(**{key: _value(value) for key, value in data.items() if key != "kind"})


def _value(found: Any) -> Any:
    return tuple(found) if isinstance(found, list) else found
