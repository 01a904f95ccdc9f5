"""Prepared statements: those over few rows, without a job, and from the second time without planning.

`java/twinlake/reading/PreparedStatements` says of which a plan is kept, and how long.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_HEAD = 4


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """All rows, with one more than the limit where there are more; and the views that the statement names."""

    rows: pa.Table
    columns: list[dict[str, str]]
    views: list[str]
    is_kept: bool
    """Whether the plan was there before."""


class PreparedStatements:
    """Asks Java in the thread of the statement."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._java, self._owner = jvm.twinlake.reading.PreparedStatements, spark._jsparkSession

    def answer(self, sql: str, limit: int, user: str) -> Prepared | None:
        """By the rights of this user. None where Spark's tasks are to compute it; an error of a wrong
        statement is left to them, too."""
        import pyarrow as pa

        found = self._java.answer(self._owner, user, sql, limit)
        if found is None:
            return None
        rows_at = _HEAD + int.from_bytes(found[:_HEAD], "big")
        head = json.loads(found[_HEAD:rows_at])
        with pa.ipc.open_stream(memoryview(found)[rows_at:]) as stream:
            rows = stream.read_all()
        names = unique(rows.column_names)
        columns = [{**one, "name": name} for one, name in zip(head["columns"], names, strict=True)]
        return Prepared(
            rows=rows.rename_columns(names), columns=columns, views=head["views"], is_kept=head["kept"]
        )  # fmt: skip


def unique(names: list[str]) -> list[str]:
    """Rows are objects: a second column of the same name gets a number that no other column has."""
    taken, numbers, made = set(names), dict[str, int](), list[str]()
    for name in names:
        shown, number = name, numbers.get(name, 1)
        while number > 1 and shown in taken:
            shown, number = f"{name}_{number}", number + 1
        taken.add(shown)
        numbers[name] = max(number, 2)
        made.append(shown)
    return made
