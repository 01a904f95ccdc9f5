"""What is on the road in each region now: a truck that moves takes its load out of one into the next."""

from twinlake import Derived

TABLE = Derived(
    name="region_merchandise",
    reads=("truck_now",),
    columns=("region", "trucks", "load_kg"),
    keys=("region",),
    by=("region",),
    sql="SELECT region, count(*) AS trucks, sum(load_kg) AS load_kg FROM truck_now GROUP BY region",
)
