"""Rows of a table by values of its key, for services: as its view has them, and in milliseconds.

A plan is made once for a view and the columns that are given, see `java/twinlake/reading/LookUps`. What no
plan can be kept for, and who may not look up directly, is answered by SQL.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.base.errors import NotFoundError, UsageError, near
from twinlake.base.location import Location
from twinlake.config.users import User
from twinlake.reading.answer import Answer
from twinlake.reading.explain import condition, moment_micros, not_a_value
from twinlake.reading.followed import Followed, Looked
from twinlake.reading.passed import Wanted
from twinlake.reading.reader import Reader
from twinlake.reading.rights import Judge
from twinlake.reading.views import SERVE
from twinlake.reading.wire import Key, text_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

MOST_ROWS = 10_000
_HEAD = 4


@dataclass(frozen=True, kw_only=True)
class LookUp:
    """Rows of a table of the live release whose key columns, all or some, have these values."""

    table: str
    key: Key


class LookUps:
    """Answers look-ups; each of its methods may be called by any thread."""

    def __init__(
        self, spark: SparkSession, lake: Location, reader: Reader, followed: Callable[[], Followed],
        judge: Judge,
    ) -> None:  # fmt: skip
        """Who sees less than all of a table, by `judge`, is answered as by its view."""
        self._judge = judge
        self._spark, self._lake, self._reader, self._followed = spark, lake, reader, followed
        jvm: Any = spark._jvm
        self._java = jvm.twinlake.reading.LookUps

    def table(self, name: str, user: User) -> Looked:
        """What is known of a table; NotFoundError without such a table that the user may read."""
        followed = self._followed()
        table = followed.looked_up.get(name)
        if table is None or not self._judge.may_read(user, name):
            known = [one for one in followed.looked_up if self._judge.may_read(user, one)]
            why = f"release {followed.release} has no such table{near(name, known)}"
            if followed.release is None:
                why = "nothing has been released yet"
            raise NotFoundError(f"there is no table {name!r}", why, "name one of the live release")
        return table

    def check(self, asked: LookUp, user: User) -> Looked:
        """What is known of the table; errors as of `table`, and UsageError for a key that is none of its."""
        table = self.table(asked.table, user)
        if table.key and (not asked.key or set(asked.key) - set(table.key)):
            text = text_of(asked.key)
            what = f"{text} is not a key of {asked.table}" if text else f"no key of {asked.table} is given"
            why = f"its key columns are {', '.join(table.key)}"
            raise UsageError(what, why, f"give some of them, or all, like {table.key[0]}=...")
        return table

    def find(self, asked: LookUp, user: User) -> Answer | None:
        """At most MOST_ROWS rows in the order of the key, and what is known of them: release, position (by
        topic, the batch up to which they are computed), stalled, no_report. None where it has to be asked by
        SQL; UsageError for more rows. The answer is to be closed."""
        table = self.check(asked, user)
        if not table.key or not self._judge.sees_all(user, asked.table):
            return None
        return self._reader.in_words(lambda: self._direct(asked, table, user.name))

    def prepare(self, table: str) -> None:
        """Makes the plan for the whole key, so that nobody waits for it."""
        known = self._followed().looked_up.get(table)
        if known and known.key:
            asked = LookUp(table=table, key=dict.fromkeys(known.key))
            self._reader.in_words(lambda: self._direct(asked, known))

    def by_sql(self, asked: LookUp, user: User, left: threading.Event, tag: str | None = None) -> Answer:
        """The same as any statement is answered."""
        table = self.check(asked, user)
        view = _view(asked.table)
        types = self._reader.in_words(lambda: dict(self._spark.table(view).dtypes))
        where = condition(self._spark, asked.key, types)
        order = f" ORDER BY {quote.names(table.key)}" if table.key else ""
        found = self._reader.answer(
            f"SELECT * FROM {view} WHERE {where}{order}",
            MOST_ROWS,
            left,
            tag=tag,
            user=user.name,
            is_placed=True,
        )
        return _refuse_many(asked, found)

    def check_topics(self, asked: LookUp, user: User, named: Iterable[str]) -> None:
        """UsageError for a topic that the table does not read: it never comes there."""
        topics = self.check(asked, user).topics
        if other := next((topic for topic in named if topic not in topics), None):
            why = f"it reads {', '.join(topics)}"
            raise UsageError(f"{asked.table} does not read the topic {other}", why, "name one of those")

    def before(self, asked: LookUp, wanted: Wanted) -> dict[str, int] | None:
        """Where the table is, by topic a batch number, if it has not passed what is wanted; else None."""
        view = _view(asked.table)
        text = self._reader.in_words(lambda: self._java.position(self._spark._jsparkSession, view))
        at: dict[str, int] = json.loads(text)
        return None if wanted.is_passed(self._lake / "logs", at) else at

    def json(self, answer: Answer) -> Iterator[bytes]:
        """As `Reader.json`."""
        return self._reader.json(answer)

    def _direct(self, asked: LookUp, table: Looked, user: str = "") -> Answer | None:
        import pyarrow as pa

        question = {
            "view": _view(asked.table), "most": MOST_ROWS,
            "key": {name: _given(asked.key[name]) for name in table.key if name in asked.key},
        }  # fmt: skip
        found = self._java.find(self._spark._jsparkSession, json.dumps(question))
        rows_at = _HEAD + int.from_bytes(found[:_HEAD], "big")
        head = json.loads(found[_HEAD:rows_at])
        if "by_sql" in head:
            return None
        if wrong := head.get("wrong"):
            text = asked.key[wrong]
            if head["type"] == "timestamp":
                moment_micros(text or "")
            raise not_a_value(wrong, text, head["type"])
        with pa.ipc.open_stream(memoryview(found)[rows_at:]) as stream:
            rows = _in_order(stream.read_all(), table.key)
        known = {"release": head["release"], "position": head["position"]}
        known |= self._reader.freshness([f"{SERVE}.{asked.table}"], user)
        return _refuse_many(asked, Answer(columns=head["columns"], found=rows, limit=MOST_ROWS, known=known))


def _in_order(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """As SQL orders them: NULL is the least."""
    import pyarrow.compute as pc

    if rows.num_rows < 2:
        return rows
    by = [(name, "ascending", "at_start") for name in key]
    return rows.take(pc.sort_indices(rows, sort_keys=by))


def _refuse_many(asked: LookUp, found: Answer) -> Answer:
    if found.found.num_rows <= MOST_ROWS:
        return found
    found.close()
    why = f"{asked.table} has more than {MOST_ROWS:,} rows with {text_of(asked.key)}"
    raise UsageError("the look-up was refused", why, "give more of the key, or read them by a query")


def _view(table: str) -> str:
    return f"{SERVE}.{quote.name(table)}"


def _given(text: str | None) -> dict[str, Any] | None:
    """A value as Java takes it: whichever its column's type needs."""
    if text is None:
        return None
    try:
        return {"text": text, "micros": moment_micros(text)}
    except UsageError:
        return {"text": text}
