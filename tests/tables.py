"""A table of orders of every stored kind, and what a plain Python loop says that it shows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.history import LATEST, SALES, latest, sales
from tests.oracle.local_days import window_at
from twinlake.base.times import EPOCH
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.events import Events
from twinlake.kinds.history import History
from twinlake.kinds.kind import StoredKind
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.extremes import Max
from twinlake.kinds.measures.multisets import TopK
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.store import Store
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.trailing import Trailing
from twinlake.kinds.windows import Hopping, Tumbling

Records = list[dict[str, Any]]
Shown = dict[Any, Any]
"""By key, what else is compared."""
SIZE, EVERY, GAP = timedelta(minutes=3), timedelta(minutes=1), timedelta(seconds=40)
ZONE = "Asia/Kamchatka"
"""There it is midnight when the orders begin."""
AT, COORDINATE = "ordered_at", ("_epoch", "_partition", "_offset")


@dataclass(frozen=True, kw_only=True)
class Case:
    """`keys` and `values` are the view's columns that `oracle` tells."""

    table: StoredKind
    keys: tuple[str, ...]
    values: tuple[str, ...]
    oracle: Callable[[Records], Shown]

    def shown(self, rows: Iterable[Mapping[str, Any]]) -> Shown:
        """Two rows of one key are an error."""
        found: Shown = {}
        for row in rows:
            key = _of(row, self.keys)
            assert key not in found, f"two rows for {key}"
            found[key] = _of(row, self.values)
        return found


def _of(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    values = tuple(_plain(row[name]) for name in names)
    return values[0] if len(values) == 1 else values


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return [tuple(one) for one in value] if isinstance(value, list) else value


def _by(records: Records, *names: str) -> dict[Any, Records]:
    groups: dict[Any, Records] = defaultdict(list)
    for one in records:
        groups[_of(one, names)].append(one)
    return groups


def _added(records: Records) -> tuple[Any, int]:
    return sum(one["amount"] for one in records), len(records)


def _totals(records: Records) -> Shown:
    return {region: _added(held) for region, held in _by(records, "region").items()}


def _sliding(records: Records) -> Shown:
    held: dict[Any, Records] = defaultdict(list)
    for one in records:
        start = EPOCH + (one[AT] - EPOCH) // EVERY * EVERY
        while one[AT] < start + SIZE:
            held[one["region"], start].append(one)
            start -= EVERY
    return {(region, start): (start + SIZE, *_added(found)) for (region, start), found in held.items()}


def _days(records: Records) -> Shown:
    held: dict[Any, Records] = defaultdict(list)
    for one in records:
        held[one["region"], *window_at(ZONE, one[AT])].append(one)
    return {(region, start): (end, *_added(found)) for (region, start, end), found in held.items()}


def _sessions(records: Records) -> Shown:
    found: Shown = {}
    for customer, held in _by(records, "customer").items():
        session: Records = []
        for one in [*sorted(held, key=lambda one: one[AT]), None]:
            if session and (one is None or one[AT] - session[-1][AT] > GAP):
                found[customer, session[0][AT]] = (session[-1][AT], *_added(session))
                session = []
            session += [one] if one else []
    return found


def _entries(records: Records) -> Shown:
    found = {}
    for region, held in _by(records, "region").items():
        often = Counter(one["customer"] for one in held)
        most = sorted(often.items(), key=lambda one: (-one[1], one[0]))[:3]
        found[region] = (len(often), most)
    return found


def _newest(records: Records) -> Shown:
    ordered = sorted(records, key=lambda one: _of(one, COORDINATE))
    return {one["customer"]: one["order_id"] for one in ordered}


def _largest(records: Records) -> Shown:
    found = {}
    for region, held in _by(records, "region").items():
        ordered = sorted(held, key=lambda one: (one["amount"], _of(one, COORDINATE)), reverse=True)
        for place, one in enumerate(ordered[:3], start=1):
            found[region, place] = (one["order_id"], one["amount"])
    return found


def _kept(records: Records) -> Shown:
    return {_of(one, COORDINATE): (one["customer"], one[AT]) for one in records if one["status"] == "paid"}


def _statuses(timed: Iterable[tuple[datetime, Any, dict[str, Any]]]) -> Shown:
    """What is valid from each change of a customer's status to the next; a cancelled order ends it."""
    found: Shown = {}
    since: dict[str, tuple[datetime, str]] = {}
    for (customer, at), one in {(one["customer"], at): one for at, _, one in sorted(timed)}.items():
        begun = since.get(customer)
        if begun and begun[1] == one["status"]:
            continue
        if begun and begun[1] != "cancelled":
            found[customer, begun[0]] = (begun[1], at, False)
        since[customer] = (at, one["status"])
    current = {(customer, at): (status, None, True) for customer, (at, status) in since.items()}
    return found | {key: row for key, row in current.items() if row[0] != "cancelled"}


def _by_time(records: Records) -> Shown:
    return _statuses((one[AT], _of(one, COORDINATE), one) for one in records)


def _by_log(records: Records) -> Shown:
    """Kafka's time of a record, and no sooner than that of one before it in its partition and customer."""
    ordered = sorted(records, key=lambda one: _of(one, COORDINATE))
    latest: dict[Any, datetime] = {}
    timed = []
    for one in ordered:
        of = (one["customer"], one["_partition"])
        latest[of] = max(one["_timestamp"], latest.get(of, one["_timestamp"]))
        timed.append((latest[of], _of(one, COORDINATE), one))
    return _statuses(timed)


def _paces(records: Records) -> Shown:
    """Of each order those of its customer before it, looked at one by one."""
    found = {}
    for one in records:
        before = [
            other for other in records
            if other["customer"] == one["customer"]
            and (other[AT], _of(other, COORDINATE)) < (one[AT], _of(one, COORDINATE))
        ]  # fmt: skip
        lately, long = (
            [other["amount"] for other in before if other[AT] >= one[AT] - length] for length in (GAP, SIZE)
        )
        spent = sum(long) if long else None
        found[_of(one, COORDINATE)] = (len(lately), len(long), spent, max(long, default=None))
    return found


_ADDED = {"sales": Sum("amount"), "orders": Count()}
_TOTALS = Aggregate(
    name="totals", inputs=("orders",), columns={name: name for name in ("region", "customer", AT, "amount")},
    keys=("region",), measures=_ADDED,
)  # fmt: skip
_MEASURED = ("sales", "orders", "smallest", "largest", "customers")
SLIDING = Case(
    table=replace(_TOTALS, name="sliding", window=Hopping(on=AT, size="3 minutes", every="1 minute")),
    keys=("region", "window_start"), values=("window_end", "sales", "orders"), oracle=_sliding,
)  # fmt: skip
VISITS = Case(
    table=Sessions(
        name="visits", inputs=("orders",), columns=_TOTALS.columns, keys=("customer",), on=AT,
        gap="40 seconds", grid="1 minute", measures=_ADDED,
    ),
    keys=("customer", "session_start"), values=("session_end", "sales", "orders"), oracle=_sessions,
)  # fmt: skip
STATUSES = History(
    name="statuses", inputs=("orders",), columns={name: name for name in ("customer", "status", AT)},
    keys=("customer",), order=(AT,), values=("status",), delete_when="status = 'cancelled'",
)  # fmt: skip
_OF_VERSIONS: dict[str, Any] = {
    "keys": ("customer", "valid_from"), "values": ("status", "valid_to", "is_current")
}  # fmt: skip
DAYS = Case(
    table=replace(_TOTALS, name="days", window=Tumbling(on=AT, size="1 day", time_zone=ZONE)),
    keys=("region", "window_start"), values=("window_end", "sales", "orders"), oracle=_days,
)  # fmt: skip
CASES = (
    Case(table=SALES, keys=("region", "window_start"), values=_MEASURED, oracle=sales),
    Case(table=LATEST, keys=("customer",), values=("order_id", "status"), oracle=latest),
    Case(table=_TOTALS, keys=("region",), values=("sales", "orders"), oracle=_totals),
    SLIDING,
    DAYS,
    VISITS,
    Case(
        table=replace(
            _TOTALS, name="buyers",
            measures={"customers": CountDistinct("customer", exact=True), "often": TopK("customer", most=3)},
        ),
        keys=("region",), values=("customers", "often"), oracle=_entries,
    ),
    Case(
        table=replace(LATEST, name="newest", order=()), keys=("customer",), values=("order_id",),
        oracle=_newest,
    ),
    Case(
        table=TopRows(
            name="largest", inputs=("orders",), columns={**_TOTALS.columns, "order_id": "order_id"},
            keys=("region",), order=("amount",), rows=3, values=("order_id", "amount"),
        ),
        keys=("region", "place"), values=("order_id", "amount"), oracle=_largest,
    ),
    Case(table=STATUSES, oracle=_by_time, **_OF_VERSIONS),
    Case(table=replace(STATUSES, name="followed_statuses", order=()), oracle=_by_log, **_OF_VERSIONS),
    Case(
        table=Trailing(
            name="paces", inputs=("orders",), columns={name: name for name in ("customer", AT, "amount")},
            keys=("customer",), on=AT, cell="2 minutes",
            last={
                "40 seconds": {"lately": Count()},
                "3 minutes": {"long": Count(), "spent": Sum("amount"), "most": Max("amount")},
            },
        ),
        keys=COORDINATE, values=("lately", "long", "spent", "most"), oracle=_paces,
    ),
    Case(
        table=Events(
            name="paid", inputs=("orders",), where="status = 'paid'",
            columns={"customer": "customer", AT: AT},
            store=Store(keys=("customer",), on=AT, cell="2 minutes", back="1 minute"),
        ),
        keys=COORDINATE, values=("customer", AT), oracle=_kept,
    ),
)  # fmt: skip
