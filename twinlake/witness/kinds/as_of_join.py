"""AsOfJoin: each left row with the right row that has the greatest (time, record id) at or before its time,
unless that one is a delete.
"""

from __future__ import annotations

from twinlake.witness.result import Asked, Result
from twinlake.witness.sides import AT, DELETED, LEFT, RIGHT, joined, same_on, sides
from twinlake.witness.text import RECORD_NUMBER, names


def as_of_join(asked: Asked) -> Result:
    definition, both = asked.definition, sides(asked, asked.definition.get("delete_when"))
    on = definition["on"]
    # of several rows with one time the last is valid alone
    order = f"PARTITION BY {names([*on, AT])} ORDER BY {RECORD_NUMBER} DESC"
    valid = (
        f"(SELECT * FROM {both[RIGHT].relation} WHERE {AT} IS NOT NULL"
        f" QUALIFY row_number() OVER ({order}) = 1)"
    )
    found = (
        f"SELECT l.{RECORD_NUMBER} AS l, CASE WHEN NOT r.{DELETED} THEN r.{RECORD_NUMBER} END AS r"
        f" FROM {both[LEFT].relation} AS l ASOF LEFT JOIN {valid} AS r"
        f" ON {same_on(on)} AND l.{AT} >= r.{AT}"
    )
    if definition["how"] == "inner":
        found = f"SELECT * FROM ({found}) WHERE r IS NOT NULL"
    return joined(asked, both, found, {LEFT: 0, RIGHT: 0})
