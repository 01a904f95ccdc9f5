"""The customers as their database has them: a deleted one is gone, also where only a new snapshot tells."""

from twinlake import Latest, mirror

TABLE = Latest(
    name="customers_now",
    inputs=("shop_customers",),
    **mirror("postgresql", keys=("id",), values=("name", "city")),
)
