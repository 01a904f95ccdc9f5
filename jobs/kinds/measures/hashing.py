"""Owns the cure of aggregates that Spark would sort for: see `hashing`."""

from __future__ import annotations

_NOTHING = "collect_list(CAST(NULL AS INT))"


def hashing(aggregate: str) -> str:
    """The same aggregate SQL, for one whose buffer is a struct or a text.

    Spark keeps such a buffer in no hash table, and sorts all rows by their group instead, unless some
    aggregate of the query is of the sort that keeps objects. So one that collects nothing stands beside it.
    """
    return f"if(size({_NOTHING}) = 0, {aggregate}, NULL)"
