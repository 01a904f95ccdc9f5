"""Seen: what somebody who may not see all of a table sees of a difference.

Both sides are read through the table's view, by their rights; what differs of that is found by the one
function of all differences. A row that their rights take in or out comes, or goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.base.errors import UsageError
from twinlake.config.users import User
from twinlake.difference.diff import Side, changes
from twinlake.reading.past_tables import PastTables
from twinlake.reading.reader import Reader
from twinlake.reading.rights import Judge
from twinlake.reading.views import SERVE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Seen:
    """Reads differences by the rights of a user."""

    def __init__(self, spark: SparkSession, reader: Reader, past: PastTables, judge: Judge) -> None:
        jvm: Any = spark._jvm
        self._spark, self._reader, self._past, self._judge = spark, reader, past, judge
        self._java = jvm.twinlake.reading.PastTables

    def refuse_blind(self, table: str, keys: Sequence[str], user: User) -> None:
        """UsageError for a table that cannot be followed: it has no keys, or this user cannot tell them."""
        if not keys:
            raise UsageError(
                f"table {table} cannot be followed",
                "it has no keys, so nobody can tell which of its rows has changed",
                "follow a table with keys over it (a Latest, an Aggregate)",
            )  # fmt: skip
        if not all(self._judge.tells_apart(user, table, key) for key in keys):
            raise UsageError(
                f"table {table} cannot be followed by {user.name}",
                f"its key is {', '.join(keys)}, and their rights hide some of that",
                "have those columns shown, or masked by `hash`, which keeps values apart",
            )

    def of(self, table: str, keys: Sequence[str], found: DataFrame, user: User) -> DataFrame:
        """Of `difference.changed.Changed.rows`, in the same form, what this user sees."""
        return changes(self._side(table, found, "l", user), self._side(table, found, "r", user), keys)

    def _side(self, table: str, found: DataFrame, side: str, user: User) -> Side:
        from pyspark.sql import DataFrame

        rows = found.where(f"{side} IS NOT NULL").select(f"{side}.*")
        with self._past.instead(table, rows):
            read = self._reader.session(user.name).sql(f"SELECT * FROM {SERVE}.{quote.name(table)}")
            owned = self._java.owned(self._spark._jsparkSession, read._jdf)
        return Side(rows=DataFrame(owned, self._spark))
