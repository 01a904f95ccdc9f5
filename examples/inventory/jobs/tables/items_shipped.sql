-- How much of each item has come to the store.
SELECT item, sum(quantity) AS shipped
FROM shipments
GROUP BY item
