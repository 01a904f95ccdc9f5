-- How much of each item was sold, whether or not it was there.
SELECT item, sum(quantity) AS sold
FROM item_sales
GROUP BY item
