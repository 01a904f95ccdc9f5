"""Tables over two topics and a Derived over both, with the plain-Python oracle of what it shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tests.project import OURS
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.totals import Sum
from twinlake.topics.topic import Topic, load_topic

ORDERS = load_topic("orders", OURS)
RETURNS: Topic = replace(ORDERS, name="returns")
"""Another topic with the fields of orders."""

SPENT = Aggregate(
    name="spent", inputs=("orders",), columns={"customer": "customer", "amount": "amount"},
    keys=("customer",), measures={"spent": Sum("amount"), "n": Count()},
)  # fmt: skip
RETURNED = Latest(
    name="returned", inputs=("returns",), keys=("customer",), order=("at",), values=("region", "amount"),
    columns={"customer": "customer", "region": "region", "amount": "amount", "at": "ordered_at"},
)  # fmt: skip
PAID = Events(
    name="paid", inputs=("orders",), where="status = 'paid'",
    columns={"customer": "customer", "paid": "amount"},
)  # fmt: skip
BALANCE = Derived(
    name="balance",
    reads=("spent", "returned", "paid"),
    columns=("customer", "rest", "region", "paid"),
    keys=("customer",),
    by=("customer",),
    sql="""
        SELECT customer, coalesce(spent, 0) - coalesce(amount, 0) AS rest, region,
            coalesce(largest, 0) AS paid
        FROM spent
        FULL JOIN returned USING (customer)
        LEFT JOIN (SELECT customer, max(paid) AS largest FROM paid GROUP BY customer) USING (customer)
    """,
    broadcast=("returned",),
)
RANKED = Derived(
    name="ranked", reads=("balance", "spent"), columns=("place", "customer", "rest", "n"), keys=("place",),
    by=(),
    sql="""
        SELECT row_number() OVER (ORDER BY rest DESC, customer) AS place, customer, rest, coalesce(n, 0) AS n
        FROM balance LEFT JOIN spent USING (customer)
    """,
)  # fmt: skip


def balance(orders: Iterable[Mapping[str, Any]], returns: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """customer -> what is left of what was spent, the region of the newest return, the largest paid order."""
    spent: dict[str, Decimal] = defaultdict(Decimal)
    paid: dict[str, Decimal] = defaultdict(Decimal)
    for one in orders:
        spent[one["customer"]] += one["amount"]
        if one["status"] == "paid":
            paid[one["customer"]] = max(paid[one["customer"]], one["amount"])
    newest = {
        one["customer"]: one
        for one in sorted(
            returns, key=lambda one: (one["ordered_at"], one["_epoch"], one["_partition"], one["_offset"])
        )
    }
    found = {}
    for customer in spent.keys() | newest.keys():
        back = newest.get(customer)
        # a customer who only returned is not among those who have paid
        largest = paid.get(customer, Decimal(0))
        left = spent.get(customer, Decimal(0)) - (back["amount"] if back else 0)
        found[customer] = (left, back["region"] if back else None, largest)
    return found


def ranked(
    orders: list[dict[str, Any]], returns: list[dict[str, Any]]
) -> dict[int, tuple[str, Decimal, int]]:
    """place -> customer, left, number of orders; the most first, ties by name."""
    counted: dict[str, int] = defaultdict(int)
    for one in orders:
        counted[one["customer"]] += 1
    left = {customer: values[0] for customer, values in balance(orders, returns).items()}
    order = sorted(left, key=lambda customer: (-left[customer], customer))
    return {place: (name, left[name], counted[name]) for place, name in enumerate(order, 1)}
