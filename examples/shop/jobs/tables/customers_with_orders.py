"""Each customer with the orders that there are: two mirrors joined, of two databases, each as it is now."""

from twinlake import Derived

TABLE = Derived(
    name="customers_with_orders",
    reads=("customers_now", "orders_now"),
    columns=("customer_id", "name", "city", "orders", "amount"),
    keys=("customer_id",),
    by=(),
    sql="""
        SELECT c.id AS customer_id, c.name, c.city, count(o.id) AS orders,
          CAST(coalesce(sum(o.amount), 0BD) AS DECIMAL(38, 2)) AS amount
        FROM customers_now AS c LEFT JOIN orders_now AS o ON c.id = o.customer_id
        GROUP BY c.id, c.name, c.city
    """,
)
