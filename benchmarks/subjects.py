"""What `make bench-kinds` measures: made-up records, and a table for each kind and each measure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.as_of_join import AsOfJoin
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.history import History
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.kind import Kind, StoredKind
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.extremes import Max, Min
from twinlake.kinds.measures.histogram import Histogram
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.picks import ArgMax, ArgMin, First, Last
from twinlake.kinds.measures.sets import CollectSet
from twinlake.kinds.measures.spread import Stddev, Variance
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.store import Store
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.trailing import Trailing
from twinlake.kinds.union import Union
from twinlake.kinds.windows import Hopping, Tumbling, window_from_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS, ITEMS = 10_000, 50_000
_COLUMNS = {name: name for name in ("key", "hot", "item", "at", "amount", "ratio")}


def records(spark: SparkSession, count: int) -> DataFrame:
    """`count` records of a day: an even key, one that 30 % of them share, an item, amounts; record ids."""
    return spark.range(count).selectExpr(
        f"concat('k', pmod(xxhash64(id), {KEYS})) AS key",
        f"IF(pmod(xxhash64(id, 1), 10) < 3, 'hot', concat('k', pmod(xxhash64(id), {KEYS}))) AS hot",
        f"concat('item', pmod(xxhash64(id, 2), {ITEMS})) AS item",
        f"timestamp_micros(1767225600000000 + CAST(id * (86400000000 / {count}) AS BIGINT)) AS at",
        "CAST(pmod(xxhash64(id, 3), 1000000) / 100 AS DECIMAL(12, 2)) AS amount",
        "pmod(xxhash64(id, 4), 1000000) / 7D AS ratio",
        "0 AS _epoch", "CAST(id % 4 AS INT) AS _partition", "id AS _offset",
        "timestamp_micros(1767225600000000) AS _timestamp",
    )  # fmt: skip


def _aggregate(name: str, measures: dict[str, Measure], key: str = "key", **more: object) -> Aggregate:
    return Aggregate(
        name=name, inputs=("made",), columns=_COLUMNS, keys=(key,), measures=measures, **more  # type: ignore[arg-type]
    )  # fmt: skip


_STORE = Store(keys=("key",), on="at", cell="1 hour", back="10 minutes", ahead="10 minutes")
_BASE: dict[str, Measure] = {"n": Count(), "total": Sum("amount")}
MEASURED: dict[str, Measure] = {
    "min": Min("amount"), "max": Max("amount"), "avg": Avg("amount"), "sum_of_doubles": Sum("ratio"),
    "stddev": Stddev("amount"), "stddev_of_doubles": Stddev("ratio"), "variance": Variance("amount"),
    "first": First("item"), "last": Last("item"), "arg_min": ArgMin("item", "amount"),
    "arg_max": ArgMax("item", "amount"), "collect_set": CollectSet("item", 10),
    "count_distinct": CountDistinct("item"), "count_distinct_exact": CountDistinct("item", exact=True),
    "quantile": Quantile("amount", (0.5, 0.95)), "top_k": TopK("item", 10),
    "histogram": Histogram("amount", low=0, high=10_000, buckets=20),
}  # fmt: skip
BASE = _aggregate("count_and_sum", _BASE)
"""What the others are compared with."""
STORED: tuple[StoredKind, ...] = (
    BASE,
    replace(BASE, name="more", inputs=("more",)),
    _aggregate("hot_key", _BASE, key="hot"),
    _aggregate("tumbling", _BASE, window=Tumbling(on="at", size="1 hour")),
    _aggregate("tumbling_tiles", _BASE, window=Tumbling(on="at", size="10 minutes")),
    _aggregate("hopping", _BASE, window=Hopping(on="at", size="1 hour", every="10 minutes")),
    _aggregate("hopping_before", _BASE, window=window_from_json(
        {"kind": "hopping", "on": "at", "size": "1 hour", "every": "10 minutes"}
    )),
    _aggregate("local_days", _BASE, window=Tumbling(on="at", size="1 day", time_zone="Europe/Berlin")),
    Latest(
        name="latest", inputs=("made",), columns=_COLUMNS, keys=("key",), order=("at",),
        values=("item", "amount"),
    ),
    TopRows(
        name="top_rows", inputs=("made",), columns=_COLUMNS, keys=("key",), order=("at",), rows=10,
        values=("item", "amount"),
    ),
    History(
        name="history", inputs=("made",), columns=_COLUMNS, keys=("key",), order=("at",),
        values=("item", "amount"),
    ),
    Trailing(
        name="trailing", inputs=("made",), columns=_COLUMNS, keys=("key",), on="at",
        last={"5 minutes": _BASE},
    ),
    Sessions(
        name="sessions", inputs=("made",), columns=_COLUMNS, keys=("key",), on="at", gap="10 minutes",
        measures=_BASE,
    ),
    Events(name="kept", inputs=("made",), columns=_COLUMNS, store=_STORE),
    Events(name="fifth", inputs=("made",), columns=_COLUMNS, where="_offset % 5 = 0", store=_STORE),
    *(_aggregate(name, {"measured": measure}) for name, measure in MEASURED.items()),
)  # fmt: skip
VIEWS: tuple[Kind, ...] = (
    IntervalJoin(
        name="interval_join", left="kept", right="kept", on=("key",), how="left", before="10 minutes",
        columns={"item": "left.item", "other": "right.item"},
    ),
    AsOfJoin(
        name="as_of_join", left="kept", right="fifth", on=("key",), how="left",
        columns={"item": "left.item", "other": "right.item"},
    ),
    Rolling(name="rolling", of="tumbling", last=("1 hour", "12 hours")),
    Union(name="union", of=("count_and_sum", "more")),
    Derived(
        name="derived", reads=("tumbling",), keys=("key",), by=("key",), columns=("key", "total"),
        sql="SELECT key, sum(total) AS total FROM tumbling GROUP BY key",
    ),
)  # fmt: skip
"""View kinds, which store nothing: read over what the stored ones of these names keep."""
END = "TIMESTAMP '2026-01-02 00:00:00Z'"
"""Where the watermark stands when they are read: at the end of the records."""
