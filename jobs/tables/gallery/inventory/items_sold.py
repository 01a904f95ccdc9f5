"""How much of each item was sold, whether or not it was there."""

from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.measures.totals import Sum

TABLE = Aggregate(
    name="items_sold",
    inputs=("item_sales",),
    columns={"item": "item", "quantity": "quantity"},
    keys=("item",),
    measures={"sold": Sum("quantity")},
)
