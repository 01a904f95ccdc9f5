"""Twinlake: one definition per table, and tables as readers see them. All that is public is here.

    from twinlake import Aggregate, Count, Sum, Tumbling

    TABLE = Aggregate(
        name="sales_per_region", inputs=("orders",), keys=("region",),
        columns={"region": "region", "ordered_at": "ordered_at", "amount": "amount"},
        window=Tumbling(on="ordered_at", size="1 minute"),
        measures={"orders": Count(), "sales": Sum("amount")},
    )

A program that reads needs the address of no file:

    import twinlake

    sales = twinlake.read("sales_per_region", as_of="release:3", where="region = 'north'")
    twinlake.metadata(sales)  # the release and position that it is, and what was computed from the log

A name is imported when it is first used (PEP 562): `import twinlake` alone loads no other module.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twinlake.base.errors import TwinlakeError as TwinlakeError
    from twinlake.kinds.aggregate import Aggregate as Aggregate
    from twinlake.kinds.as_of_join import AsOfJoin as AsOfJoin
    from twinlake.kinds.barriers import Snapshot as Snapshot
    from twinlake.kinds.barriers import SourcePlace as SourcePlace
    from twinlake.kinds.derived import Derived as Derived
    from twinlake.kinds.events import Events as Events
    from twinlake.kinds.history import History as History
    from twinlake.kinds.interval_join import IntervalJoin as IntervalJoin
    from twinlake.kinds.latest import Latest as Latest
    from twinlake.kinds.latest import mirror as mirror
    from twinlake.kinds.measures.counts import Count as Count
    from twinlake.kinds.measures.counts import CountDistinct as CountDistinct
    from twinlake.kinds.measures.extremes import Max as Max
    from twinlake.kinds.measures.extremes import Min as Min
    from twinlake.kinds.measures.histogram import Histogram as Histogram
    from twinlake.kinds.measures.multisets import Quantile as Quantile
    from twinlake.kinds.measures.multisets import TopK as TopK
    from twinlake.kinds.measures.picks import ArgMax as ArgMax
    from twinlake.kinds.measures.picks import ArgMin as ArgMin
    from twinlake.kinds.measures.picks import First as First
    from twinlake.kinds.measures.picks import Last as Last
    from twinlake.kinds.measures.sets import CollectSet as CollectSet
    from twinlake.kinds.measures.spread import Stddev as Stddev
    from twinlake.kinds.measures.spread import Variance as Variance
    from twinlake.kinds.measures.totals import Avg as Avg
    from twinlake.kinds.measures.totals import Sum as Sum
    from twinlake.kinds.rolling import Rolling as Rolling
    from twinlake.kinds.sessions import Sessions as Sessions
    from twinlake.kinds.steps import Explode as Explode
    from twinlake.kinds.store import Store as Store
    from twinlake.kinds.top_rows import TopRows as TopRows
    from twinlake.kinds.trailing import Trailing as Trailing
    from twinlake.kinds.union import Union as Union
    from twinlake.kinds.windows import Hopping as Hopping
    from twinlake.kinds.windows import Tumbling as Tumbling
    from twinlake.remote import metadata as metadata
    from twinlake.remote import read as read
    from twinlake.remote import read_batches as read_batches

__version__: str
_PLACES = {
    "base.errors": ("TwinlakeError",),
    "kinds.aggregate": ("Aggregate",),
    "kinds.as_of_join": ("AsOfJoin",),
    "kinds.barriers": ("Snapshot", "SourcePlace"),
    "kinds.derived": ("Derived",),
    "kinds.events": ("Events",),
    "kinds.history": ("History",),
    "kinds.interval_join": ("IntervalJoin",),
    "kinds.latest": ("Latest", "mirror"),
    "kinds.measures.counts": ("Count", "CountDistinct"),
    "kinds.measures.extremes": ("Max", "Min"),
    "kinds.measures.histogram": ("Histogram",),
    "kinds.measures.multisets": ("Quantile", "TopK"),
    "kinds.measures.picks": ("ArgMax", "ArgMin", "First", "Last"),
    "kinds.measures.sets": ("CollectSet",),
    "kinds.measures.spread": ("Stddev", "Variance"),
    "kinds.measures.totals": ("Avg", "Sum"),
    "kinds.rolling": ("Rolling",),
    "kinds.sessions": ("Sessions",),
    "kinds.steps": ("Explode",),
    "kinds.store": ("Store",),
    "kinds.top_rows": ("TopRows",),
    "kinds.trailing": ("Trailing",),
    "kinds.union": ("Union",),
    "kinds.windows": ("Hopping", "Tumbling"),
    "remote": ("metadata", "read", "read_batches"),
}
_WHERE = {name: f"twinlake.{module}" for module, names in _PLACES.items() for name in names}
__all__ = sorted(_WHERE)


if not TYPE_CHECKING:  # to a type checker a name that is not listed above is a mistake

    def __getattr__(name: str) -> Any:
        """The public name, from where it is defined."""
        if name == "__version__":
            return import_module("twinlake.base.version").VERSION
        if name not in _WHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
