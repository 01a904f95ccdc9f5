-- What is on the road in each region now: a truck that moves takes its load out of one into the next.
-- reads: truck_now
-- keys: region
-- by: region
SELECT region, count(*) AS trucks, sum(load_kg) AS load_kg FROM truck_now GROUP BY region
