"""Sales by the region in which the buyers are now; NULL for those who hide or were never seen."""

from twinlake import Derived

TABLE = Derived(
    name="region_sales",
    reads=("user_sales", "user_location"),
    columns=("region", "sales", "purchases", "buyers"),
    keys=("region",),
    by=(),
    sql="""
        SELECT l.location AS region, CAST(sum(s.sales) AS DECIMAL(38, 2)) AS sales,
          sum(s.purchases) AS purchases, count(*) AS buyers
        FROM user_sales AS s LEFT JOIN user_location AS l ON s.user = l.user
        GROUP BY l.location
    """,
)
