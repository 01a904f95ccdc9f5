-- Items of which less than 20 are on hand: order so many that 20 are left once all customers have theirs.
-- reads: stock_on_hand
-- keys: item
-- by: item
SELECT item, on_hand, CAST(20 - on_hand + back_ordered AS DECIMAL(38, 0)) AS to_order
FROM stock_on_hand
WHERE on_hand < 20
