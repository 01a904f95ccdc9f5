"""Owns what a kind is: the two seams through which everybody else sees a table's definition.

Nobody outside this room asks which kind a definition is of. Whatever differs between kinds is a member here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeGuard

from twinlake.kinds.clock import EVENT_TIME, TableClock
from twinlake.kinds.grid import Grid
from twinlake.kinds.windows import ALL, Windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from twinlake.base.errors import DefinitionError
    from twinlake.kinds.definition import Place
    from twinlake.kinds.ending import Ending
    from twinlake.kinds.expression import Expression, Stage
    from twinlake.kinds.store import Store

UNKNOWN_TIME = "CAST(NULL AS TIMESTAMP)"


@dataclass(frozen=True, kw_only=True)
class ViewClock:
    """What a view says about time rather than history: per topic, the watermark and the contract's lateness.

    `watermarks` are scalar SQL expressions; a topic that is not named has no watermark yet. `clocks` are the
    same by topic and clock of the log's own, see `kinds/clock.py`.
    """

    watermarks: Mapping[str, str] = field(default_factory=dict)
    late_after: Mapping[str, timedelta] = field(default_factory=dict)
    clocks: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def watermark(self, clock: TableClock) -> str:
        """How far it has come: records that it puts before that are late, or there are none."""
        if clock.time == EVENT_TIME:
            return self.watermarks.get(clock.topic, UNKNOWN_TIME)
        return self.clocks.get((clock.topic, clock.time), UNKNOWN_TIME)

    def late_by(self, clock: TableClock) -> timedelta | None:
        """How far behind the watermark a record may be and still be in time; None where nobody says."""
        return self.late_after.get(clock.topic) if clock.has_late_records else timedelta(0)


@dataclass(frozen=True, kw_only=True)
class Paired:
    """A join as the pairs of rows that it finds, whose expressions have not been computed yet."""

    definition: Kind
    """The same join: each side's whole row is a column with the name by which the expressions know it."""
    records: tuple[tuple[str, tuple[str, ...]], ...]
    """By table of a side, the columns with the record id of its record; NULL where it has none."""
    expressions: tuple[Expression, ...]


class Kind(Protocol):
    """A definition of any kind: frozen data that round-trips to JSON and runs the same anywhere.

    Two sorts: a stored kind (`StoredKind`) keeps partial rows and reads exactly one topic. A view kind reads
    the valid rows of any number of topics, or other tables, and stores nothing: no rows, no owner, no step.
    """

    kind: ClassVar[str]
    """Its name in JSON; `kinds/all.py` lists it under this."""
    reads_states: ClassVar[bool]
    """Whether it reads the states of the tables in `reads` rather than their views."""

    @property
    def stores_rows(self) -> bool:
        """Whether this definition is a StoredKind; ask `is_stored`, which tells the type checker too."""

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """The topics it reads; their rows have the newest schema's fields and the record id columns."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables it reads, by name: those of the same release. Only view kinds read any."""

    def bound(self, tables: Mapping[str, Kind]) -> Kind:
        """The same definition, which knows those of the tables it reads; `view` needs them."""

    def unfit(self, tables: Mapping[str, Kind]) -> Iterator[DefinitionError]:
        """What is wrong with the tables that it reads, which are among these, each by its own name."""

    @property
    def kept(self) -> Store | None:
        """How its rows are kept for joins to find them; None for a table that keeps none so."""

    @property
    def paired(self) -> Paired | None:
        """For a table that joins rows: what its expressions are computed over; None for another one."""

    @property
    def in_part(self) -> str | None:
        """A sentence about what its view over the newest records shows otherwise than over all of history;
        None where it shows some of the same rows."""

    @property
    def ending(self) -> Ending | None:
        """When its rows are shown no more; None for a table that shows them for ever."""

    @property
    def clock(self) -> TableClock | None:
        """The one that its windows, sessions or kept rows go by; None for a table that goes by none."""

    @property
    def stored_anew(self) -> Kind:
        """The same table as a new version stores it, where a version of before may store it otherwise."""

    def after_steps(self, rows: DataFrame) -> DataFrame | None:
        """Its topic's rows after the row-local steps, where the rest of it asks for no field of a record:
        the columns of the definition, and those of the record id. None where that cannot be said."""

    def appended(self, records: DataFrame) -> DataFrame | None:
        """The rows that these records of its topic, which have `record_id.BATCH` too, add to its view: the
        columns of `output`, then that one. None for a table whose rows change once they are there."""

    def unwindowed(self, key: str) -> Kind | None:
        """The same over states of some of its windows, merged into one, with a key column more, the first.

        None for a table without windows, and for one whose windows overlap: they count a row several times.
        """

    def shape(self) -> Mapping[str, Any]:
        """What tables of several topics must have in common to be shown as one, its kind among it: all that
        it says but its topic and its row-local steps.

        DefinitionError for a table that stores nothing, or whose rows follow what topics do not share: the
        order of a log, or one watermark.
        """

    @property
    def place(self) -> Place | None:
        """Where it was written, None for a stored definition."""

    @property
    def view_keys(self) -> tuple[str, ...]:
        """The columns that identify a row of the view."""

    @property
    def by(self) -> tuple[str, ...]:
        """Columns of the view such that its rows depend only on input rows with equal values."""

    @property
    def output(self) -> tuple[str, ...]:
        """The columns of the view, in order."""

    @property
    def implied(self) -> tuple[str, ...]:
        """Those of them that every table of the kind has, so that its contract need not list them."""

    @property
    def timeless(self) -> tuple[str, ...]:
        """The columns that history alone decides: all but those that follow the watermark."""

    def follows_watermark(self, view_clock: ViewClock) -> Mapping[str, str] | None:
        """SQL over the view's own columns for each column that is not timeless, by name; None where they do
        not tell it."""

    @property
    def additive(self) -> tuple[str, ...]:
        """Columns of numbers whose sum over rows of the view means something, as far as the kind can tell."""

    @property
    def time_column(self) -> str | None:
        """The column of the view that says of which time a row is; None where the kind cannot tell."""

    def to_json(self) -> dict[str, Any]:
        """Plain data; `kinds.all.from_json` is its exact inverse."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Kind:
        """The definition that `to_json` of this kind came from; UsageError for an unknown key."""

    def error(self, why: str, remedy: str = "") -> DefinitionError:
        """An error at the place of this definition."""

    def error_at_text(self, text: str, why: str, remedy: str = "", word: str = "") -> DefinitionError:
        """An error at the line of this definition in which `text` is written; at a word of it, where one is
        given."""

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        """The expressions that are refused unless they are row-local, in the order in which they run.

        `rows` has an empty relation per topic, and per table that it reads: Spark's, or one that knows
        columns and types alone (`definitions/typed_rows.py`). A stage is taken only when the one before it
        was sound.
        """

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        """What else keeps it from running alike anywhere, such as types; its expressions are sound."""

    def mismatched(self, stepped: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        """What does not fit together in the tables whose states it reads, by what their row-local steps make
        of an empty topic, each by its own name."""

    def type_errors(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        """What it says of itself that nobody can have meant; it runs nevertheless."""

    @property
    def query(self) -> str | None:
        """For a kind that is one SELECT over the views in `reads`: its text. It has no stages then."""

    def mistyped(self, types: Mapping[str, str]) -> Iterator[DefinitionError]:
        """What is wrong with the columns of `query`, by their Spark types."""

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        """SELECT text with the columns of `output`, plain Spark SQL that every reader runs.

        `relations` are what follows FROM: for a stored kind its own states under its own name, for a view
        kind the valid rows of each topic, and of each table that it reads the view or the states.
        For each column in `scaled` that is compared with a tolerance
        there is one more, `equality.scale_of(column)`. Filters on keys and windows reach the scans.
        """

    def behind(self, name: str, source: str, columns: Sequence[str], shown: str) -> str:
        """SELECT text of the rows of an input, a topic or a table that it reads, behind rows of the view.

        `source` is what follows FROM to read the input: for a topic its valid rows, for a table its view,
        with these columns and perhaps more. `shown` is the same for the view's rows. Rows may be among them
        that have changed nothing, never one too few; see `kinds/lineage.py`.
        """

    @property
    def decided_by(self) -> tuple[str, ...]:
        """SQL over the rows of `behind`: the one that is greatest in these decided the row that is shown;
        nothing where all of them made it."""

    @property
    def decided_place(self) -> str | None:
        """The column of the view that says how many of them are as great or greater: 1 for the greatest. None
        where the greatest has decided every row."""

    def late(self, records: str) -> str | None:
        """SELECT text of what came late or too late per window, see `kinds/late.py`; None where a table has
        none. `records` is what follows FROM: the topic's rows of `lake.log.Log.late_sql`.
        """


class StoredKind(Kind, Protocol):
    """A kind with mergeable states: any cut of its rows into partials, merged in any order, is one state.

    Every state has the columns of `state_keys`, its own, and the evidence of `kinds.evidence`.
    """

    @property
    def state_keys(self) -> tuple[str, ...]:
        """The columns that identify a merged state; NULL is a key."""

    @property
    def cells(self) -> Grid | None:
        """The time cells in which the states lie, None where they lie in none: batch work is cut along it.

        Rows of the view may be made of several, see `Grid.reach`.
        """

    def partial(self, rows: DataFrame, windows: Windows = ALL) -> DataFrame:
        """The states of these rows of its topic: one per key. Speed and batch both run exactly this.

        Only those in `windows`, which are all of them for a kind without a grid; of the topic's files those
        are read that may have rows for them.
        """

    def merge(self, states: DataFrame) -> DataFrame:
        """One state per key out of many; the same columns as `partial`, in the same order."""

    @property
    def by_state(self) -> StoredKind:
        """The same over the same states, whose view shows each of them by itself: by the time of its cell
        where rows are made of several."""

    def shown_in(self, states: DataFrame) -> DataFrame:
        """The states, each once for every row of the view that it is part of, with its columns of `by` where
        states tell them."""

    def gathered(self, relation: str) -> str:
        """What follows FROM to read the states of a version (SQL) for `view`: the same rows, laid out as it
        groups them. No part of what the definition means."""

    def scales(self, states: Mapping[str, str]) -> dict[str, str]:
        """For each double state column with a tolerance, the state column with its sum of absolute values.

        `states` maps the state's columns to their Spark types. Columns that are not named compare exactly.
        """


def is_stored(kind: Kind) -> TypeGuard[StoredKind]:
    """Whether versions of the table hold rows of their own."""
    return kind.stores_rows


def grid_of(kind: Kind) -> Grid | None:
    """The time cells by which the table can be limited to a range; None for a kind without."""
    return kind.cells if is_stored(kind) else None
