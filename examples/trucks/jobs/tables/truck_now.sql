-- Where each truck is now, by its newest report: repeated and late ones change nothing.
-- delete_when: retired
SELECT truck, region, load_kg, reported_at
FROM (
  SELECT truck, region, load_kg, retired, reported_at
  FROM truck_reports
)
QUALIFY row_number() OVER (PARTITION BY truck ORDER BY reported_at DESC) = 1
