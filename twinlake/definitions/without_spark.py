"""What is known of a definition without Spark: what is wrong with it, its columns, and what is left to Spark.

The witness types what it would evaluate: of that it is known that both engines agree. All else it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from sqlglot import exp

from twinlake.base.errors import DefinitionError
from twinlake.definitions import misspelt, syntax
from twinlake.definitions.typed_rows import Misspelt, TypedRows
from twinlake.kinds.dependencies import upstream_topics
from twinlake.kinds.expression import Expression
from twinlake.kinds.kind import Kind
from twinlake.kinds.row_local import OF_THE_RUN, SPECIAL_LITERAL, mistyped
from twinlake.topics.topic import Topic
from twinlake.witness.kinds.all import KINDS
from twinlake.witness.names import shown_columns
from twinlake.witness.question import Field, Question, ReadTable, Rows, TopicLog
from twinlake.witness.refused import Refused, UnknownField
from twinlake.witness.rows import Evaluator
from twinlake.witness.rules.parser import parse

Columns = tuple[tuple[str, str], ...]
"""(name, Spark type) of a view."""


@dataclass(frozen=True, kw_only=True)
class Typed:
    """Of one definition. It is whole where nothing is wrong and nothing is left."""

    wrong: tuple[DefinitionError, ...] = ()
    left: tuple[DefinitionError, ...] = ()
    """What only Spark can say, each at its place: the expression, and why."""
    columns: Columns | None = None
    """Those of the view; None where something of it is wrong or left."""


@dataclass
class Typist:
    """Types definitions, each after those that it reads. `close` it, with the engine that it has opened."""

    topics: dict[str, Topic] = field(default_factory=dict)
    tables: dict[str, Kind] = field(default_factory=dict)
    """Those that were typed, by name."""
    columns: dict[str, Columns] = field(default_factory=dict)
    """Of their views, where they are known."""
    engine: Evaluator | None = None

    def close(self) -> None:
        if self.engine is not None:
            self.engine.close()

    def know(self, table: Kind, columns: Columns) -> None:
        """What is known of a table already."""
        self.tables[table.name], self.columns[table.name] = table, columns

    def typed(self, table: Kind) -> Typed:
        """What can be said of the definition, which is bound to those that it reads."""
        found = self._typed(table)
        self.tables[table.name] = table
        if found.columns is not None:
            self.columns[table.name] = found.columns
        return found

    def _typed(self, table: Kind) -> Typed:
        if table.kind not in KINDS:
            return _left(table.error(f"kind {table.kind}: the witness does not know it"))
        if missing := [name for name in table.reads if name not in self.columns]:
            return _left(table.error(f"it reads {', '.join(missing)}, whose columns are not known"))
        rows = {name: TypedRows.of(self.topics[name].columns) for name in table.inputs}
        rows |= {name: TypedRows.of(self.columns[name]) for name in table.reads}
        wrong, left = self._expressions(table, rows)
        if not wrong and not left and table.query is None:
            wrong = list(table.problems(cast("Any", rows))) or list(table.mismatched(self._stepped(table)))
        if wrong or left:
            return Typed(wrong=tuple(wrong), left=tuple(left))
        return self._view(table)

    def _expressions(
        self, table: Kind, rows: Mapping[str, TypedRows]
    ) -> tuple[list[DefinitionError], list[DefinitionError]]:
        """What is wrong and what is left; nothing after the first stage with something wrong."""
        wrong, left = list[DefinitionError](), list[DefinitionError]()
        if table.query is not None:
            return list(self._misspelt_query(table, table.query)), left
        try:
            for stage in table.stages(cast("Any", rows)):
                for one in stage.expressions:
                    try:
                        wrong += _mistyped(table, one, cast("TypedRows", stage.rows))
                    except Refused as error:
                        why = f"{one.what}: {error.expression} ({error.why_text})"
                        left.append(table.error_at_text(one.sql, why))
                if wrong:
                    break
        except Refused as error:  # of what makes the next stage's rows
            left = left or [table.error(error.words)]
        return wrong, left

    def _stepped(self, table: Kind) -> dict[str, Any]:
        """By table whose states it reads, the columns after its steps."""
        found = {}
        for name in table.reads if table.reads_states else ():
            for topic in self.tables[name].inputs:
                rows = TypedRows.of(self.topics[topic].columns)
                if (stepped := self.tables[name].after_steps(cast("Any", rows))) is not None:
                    found[name] = stepped
        return found

    def _misspelt_query(self, table: Kind, sql: str) -> Iterator[DefinitionError]:
        if SPECIAL_LITERAL.search(sql):
            yield table.error_at_text(sql, f"sql: {OF_THE_RUN}")
            return
        try:
            tree = parse(sql)
        except Refused:
            if why := syntax.why_no_query(sql):
                yield table.error_at_text(sql, f"sql: {why}")
            return  # `_view` says what else there is
        if not isinstance(tree, exp.Query):
            return  # `TABLE t` is one to Spark: `_view` leaves it
        reads = {name: [column for column, _ in self.columns[name]] for name in table.reads}
        for one in misspelt.in_query(tree, reads):
            yield table.error_at_text(sql, f"sql: {one.why}", word=one.word)
        shown = shown_columns(tree)
        if shown is not None and [one.lower() for one in shown] != [one.lower() for one in table.output]:
            why = f"sql: its columns are {', '.join(shown)}, not {', '.join(table.output)}"
            yield table.error_at_text(sql, why)

    def _view(self, table: Kind) -> Typed:
        self.engine = self.engine or Evaluator()
        try:
            types = self.engine.types(self._question(table))
            columns = tuple((name, types[name].spark) for name in table.output)
        except Refused as error:
            return _left(table.error(f"{error.expression} ({error.why_text})"))
        if wrong := tuple(table.mistyped(dict(columns))):
            return Typed(wrong=wrong)
        return Typed(columns=columns)

    def _question(self, table: Kind) -> Question:
        """Over no records."""
        reads = {
            name: ReadTable(
                definition=self.tables[name].to_json(),
                shown=None if table.reads_states else Rows(files=(), columns=self.columns[name]),
            )
            for name in table.reads
        }
        topics = {name: _empty(self.topics[name]) for name in upstream_topics(table, self.tables)}
        nothing = Rows(files=(), columns=())
        return Question(definition=table.to_json(), topics=topics, shown=nothing, reads=reads)


def _left(error: DefinitionError) -> Typed:
    return Typed(left=(error,))


def _mistyped(table: Kind, one: Expression, rows: TypedRows) -> Iterator[DefinitionError]:
    if SPECIAL_LITERAL.search(one.sql):
        yield table.error_at_text(one.sql, f"{one.what}: {OF_THE_RUN}")
        return
    try:
        found = rows.type_of(one.sql)
    except Misspelt as error:
        yield table.error_at_text(one.sql, f"{one.what}: {error.why_text}", word=error.word)
        return
    except UnknownField as error:
        yield table.error_at_text(one.sql, f"{one.what}: {error.why_text}", word=error.name)
        return
    if why := mistyped(one, found.spark):
        yield table.error_at_text(one.sql, f"{one.what}: {why}")


def _empty(topic: Topic) -> TopicLog:
    return TopicLog(
        contract=topic.contract.to_json(), fields=tuple(map(Field.of, topic.newest.fields)), files=(),
        position=0, event={},
    )  # fmt: skip
