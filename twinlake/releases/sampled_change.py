"""Sampled change: a changed definition and the live version, both computed over the same part of the logs.

Nothing is stored, and no version's owner is asked: a table that is stalled is judged like any other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from twinlake.base import quote
from twinlake.base.errors import UsageError
from twinlake.base.job import Run
from twinlake.base.times import format_moment, from_micros
from twinlake.batch.failing_view import Computable, raising
from twinlake.difference.diff import Side
from twinlake.difference.pinned import computed_at, only
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog.failing_record import REMEDY, is_of_data
from twinlake.lake.catalog.maintained_version import LogView, Readable
from twinlake.lake.catalog.version import Pin
from twinlake.lake.log.recent import Batches, Recent, everything, newest
from twinlake.lake.log.sampled_log import sampled
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.analysed import not_open
from twinlake.releases.compare import compare_pinned, computed_from
from twinlake.releases.comparison import Comparison
from twinlake.releases.drafted import Definitions, Draft, drafted
from twinlake.releases.sample_limits import limits
from twinlake.releases.sampled import SampledChange, SampledTopic, Taken

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SAME = "the definition means what is live"
Pinned = tuple[Computable, Pin]
Hold = Callable[["DataFrame"], "DataFrame"]
"""Keeps rows in memory once they are computed; the same rows."""


def sample(
    lake: OpenLake, table: str, definitions: Definitions, run: Run, *, records: int, keys: int | None = None
) -> SampledChange:
    """What the definitions would change of the table: over the newest batches of each topic that hold at most
    so many records, or over all records of so many keys that are drawn among those.

    NotFoundError for a table without a live version, UsageError for keys that the table cannot be limited
    to; DefinitionError for a definition that is wrong, or that raises for a record.
    """
    began = time.monotonic()
    draft = drafted(lake, table, definitions, run)
    found = SampledChange(
        table=table, against=draft.against, changed=bool(draft.why), why=draft.why or (SAME,), seconds=0.0
    )
    if found.changed:
        found = _judged(lake, draft, run, found, records, keys)
    return replace(found, seconds=round(time.monotonic() - began, 2))


def _judged(
    lake: OpenLake, draft: Draft, run: Run, found: SampledChange, records: int, keys: int | None
) -> SampledChange:
    at = _ends(lake, draft)
    logs = {topic: lake.logs[topic] for topic in at.position}
    recent = {name: newest(log, at.position[name], records) for name, log in logs.items()}
    batches = {name: one.batches for name, one in recent.items()}
    with _holding() as hold:
        drawn: DataFrame | None = None
        if keys is not None:
            run.progress(0, 2, "steps", f"drawing keys of {found.table}")
            with _sides(lake, draft, batches, at) as sides:
                drawn = hold(_drawn(sides, keys))
            batches = {name: everything(log, at.position[name]) for name, log in logs.items()}
        run.check_cancelled()
        run.progress(1, 2, "steps", f"comparing {found.table} over the sample", span=1)
        with _sides(lake, draft, batches, at) as sides:
            compared = _compared(sides, lambda one: _held(one, drawn, hold))
            definitions = [one for opened, _ in sides for one in _definitions(opened)]
        taken = _taken(recent, None if drawn is None else drawn.count())
    starts = {name: start.until for name, log in logs.items() if (start := log.start)}
    return replace(
        found, sample=taken, comparison=compared, cost=draft.cost, limits=limits(definitions, taken, starts)
    )


def _ends(lake: OpenLake, draft: Draft) -> Pin:
    """Where the logs of both versions end now, with what their newest commits say of time."""
    topics = dict.fromkeys((*draft.blue.topics, *draft.green.topics))
    for topic in topics:
        if topic not in lake.logs:
            raise not_open(lake, draft.table, topic)
    ends = {topic: lake.logs[topic].metadata() for topic in topics}
    return Pin(
        version=draft.green,
        position={topic: int(end.get("batch", 0)) for topic, end in ends.items()},
        watermarks={topic: end.get("watermark") for topic, end in ends.items()},
        clocks={topic: end.get("clocks", {}) for topic, end in ends.items()},
    )


@contextmanager
def _sides(
    lake: OpenLake, draft: Draft, batches: Mapping[str, Batches], at: Pin
) -> Iterator[tuple[Pinned, Pinned]]:
    """The live version and the changed one over these batches, inside."""
    with sampled(lake.logs, batches) as logs:
        blue = computed_from(logs, draft.blue, lake.versions.get)
        green = computed_from(logs, draft.green, draft.finding(lake.versions.get))
        yield computed_at(blue, at), computed_at(green, at)


@contextmanager
def _holding() -> Iterator[Hold]:
    """What keeps rows in memory, inside."""
    held: list[DataFrame] = []

    def hold(rows: DataFrame) -> DataFrame:
        held.append(rows.persist())
        return held[-1]

    try:
        yield hold
    finally:
        for rows in held:
            rows.unpersist()


def _held(side: Side, drawn: DataFrame | None, hold: Hold) -> Side:
    """The side in memory: each is computed once, however often a comparison looks at it."""
    limited = side if drawn is None else only(side, drawn)
    return replace(limited, rows=hold(limited.rows))


def _compared(sides: tuple[Pinned, Pinned], taken: Callable[[Side], Side]) -> Comparison:
    """DefinitionError where the changed definition raises; what the live one raises is in the comparison."""
    blue, green = sides
    try:
        return compare_pinned(blue, green, taken)
    except Exception as error:
        opened, pin = green
        if not is_of_data(error) or (found := raising(opened, pin, opened.view(pin))) is None:
            raise
        definition = opened.definition
        raise definition.error(f"it cannot be computed: {found.words}", REMEDY) from error


def _drawn(sides: tuple[Pinned, Pinned], keys: int) -> DataFrame:
    """So many of the keys that one of the versions shows, the same ones whenever they are drawn."""
    from pyspark.sql import functions as F

    names = _keys(sides[1][0].definition)
    if names != _keys(sides[0][0].definition):
        raise _no_keys(sides[1][0].definition, "the live version has other keys")
    blue, green = (opened.view(pin).select(*map(quote.name, names)) for opened, pin in sides)
    if blue.dtypes != green.dtypes:
        raise _no_keys(sides[1][0].definition, "the keys of the live version have other types")
    order = F.xxhash64(*map(quote.name, names))
    return blue.union(green).distinct().orderBy(order, *map(quote.name, names)).limit(keys)


def _keys(definition: Kind) -> tuple[str, ...]:
    """The columns by which records are of one key; no time, and no record id, which is another in each."""
    left = (*definition.implied, definition.time_column)
    names = tuple(name for name in definition.by if name not in left)
    if not names:
        raise _no_keys(definition, "a row of it is made of one record, or of records of any key")
    return names


def _no_keys(definition: Kind, why: str) -> UsageError:
    what = f"table {definition.name} cannot be judged by some of its keys"
    return UsageError(what, why, "judge it by the newest records (`--records`)")


def _definitions(opened: Readable) -> Iterator[Kind]:
    """That of a version, and of all that it reads."""
    yield opened.definition
    for read in opened.reads.values() if isinstance(opened, LogView) else ():
        yield from _definitions(read)


def _taken(recent: Mapping[str, Recent], keys: int | None) -> Taken:
    return Taken(
        by="records" if keys is None else "keys",
        records=sum(one.records for one in recent.values()),
        of_records=sum(one.of_records for one in recent.values()),
        topics={name: _topic(one) for name, one in recent.items()},
        keys=keys,
        whole=keys is None and all(one.whole for one in recent.values()),
    )


def _topic(recent: Recent) -> SampledTopic:
    held = recent.held
    begin = min((one.begin for one in held.values()), default=None)
    end = max((one.end for one in held.values()), default=None)
    return SampledTopic(
        first_batch=min(held, default=0), last_batch=max(held, default=0), records=recent.records,
        begin=None if begin is None else format_moment(from_micros(begin)),
        end=None if end is None else format_moment(from_micros(end)),
    )  # fmt: skip
