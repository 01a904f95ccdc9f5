"""Items of which less than 20 are on hand: order so many that 20 are left once all customers have theirs."""

from twinlake import Derived

TABLE = Derived(
    name="items_to_order",
    reads=("stock_on_hand",),
    columns=("item", "on_hand", "to_order"),
    keys=("item",),
    by=("item",),
    sql="""
        SELECT item, on_hand, CAST(20 - on_hand + back_ordered AS DECIMAL(38, 0)) AS to_order
        FROM stock_on_hand
        WHERE on_hand < 20
    """,
)
