"""How much of each item was sold, whether or not it was there."""

from twinlake import Aggregate, Sum

TABLE = Aggregate(
    name="items_sold",
    inputs=("item_sales",),
    columns={"item": "item", "quantity": "quantity"},
    keys=("item",),
    measures={"sold": Sum("quantity")},
)
