"""How much of each item has come to the store."""

from twinlake import Aggregate, Sum

TABLE = Aggregate(
    name="items_shipped",
    inputs=("shipments",),
    columns={"item": "item", "quantity": "quantity"},
    keys=("item",),
    measures={"shipped": Sum("quantity")},
)
