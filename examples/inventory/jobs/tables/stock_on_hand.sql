-- What is on hand and what is owed: by all that came and went, so the order of arrival cannot matter.
-- reads: items_shipped, items_sold
-- keys: item
-- by: item
SELECT item, greatest(rest, 0BD) AS on_hand, greatest(-rest, 0BD) AS back_ordered
FROM (
  SELECT coalesce(c.item, s.item) AS item,
    CAST(coalesce(c.shipped, 0BD) - coalesce(s.sold, 0BD) AS DECIMAL(38, 0)) AS rest
  FROM items_shipped AS c FULL JOIN items_sold AS s ON c.item = s.item
)
