"""Owns which records are behind the keys that differ: it reads the log once more, for those keys alone."""

from __future__ import annotations

import duckdb

from twinlake.witness.answer import MOST_RECORDS, Behind, RecordId
from twinlake.witness.database import ENGINE, Database
from twinlake.witness.refused import one_line
from twinlake.witness.result import Result, Source
from twinlake.witness.text import RECORD_ID, names, same_keys
from twinlake.witness.types import identifier, text_literal

NTH = "_nth"
_SHOWN = 200


def behind(database: Database, result: Result, differing: str, count: int) -> tuple[Behind, ...]:
    """Of the rows of `differing`, which have the view's keys, what `ends` names, and a number NTH from 1 to
    `count`: the records of each. What keeps them from being listed is no error: the difference stays one."""
    if not result.sources:
        return (Behind(why=result.unlisted),) * count
    records = " UNION ALL ".join(_records(source, differing) for source in result.sources)
    # all sources of a kind have one order
    first = "max" if result.sources[0].newest_first else "min"
    parts = ", ".join(f"{name} := {name}" for name in ("_source", *RECORD_ID))
    try:
        found = database.run(
            f"SELECT {NTH}, count(*), {first}(struct_pack({parts}), {MOST_RECORDS}) FROM ({records})"
            f" GROUP BY {NTH}"
        )
    except (duckdb.Error, MemoryError) as error:
        why = f"{ENGINE} could not list them: {one_line(error, _SHOWN)}"
        return (Behind(why=why),) * count
    by_number = {number: Behind(records=tuple(map(_id, ids)), count=many) for number, many, ids in found}
    return tuple(by_number.get(number, Behind()) for number in range(1, count + 1))


def ends(result: Result) -> tuple[str, ...]:
    """The columns beside the keys that tell how far the row of a key reaches."""
    return tuple(dict.fromkeys(source.within[1] for source in result.sources if source.within))


def _records(source: Source, differing: str) -> str:
    """SELECT text: each record once, however many rows it was exploded into."""
    if source.within is None:
        on = same_keys(source.keys, "d", "b")
    else:
        at, end = (identifier(name) for name in source.within)
        *keys, start = source.keys
        on = f"{same_keys(keys, 'd', 'b')} AND b.{at} >= d.{identifier(start)} AND b.{at} <= d.{end}"
    return (
        f"SELECT DISTINCT d.{NTH} AS {NTH}, {text_literal(source.topic)} AS _source, {names(RECORD_ID, 'b.')}"
        f" FROM {differing} AS d JOIN ({source.sql}) AS b ON {on}"
    )


def _id(found: dict[str, object]) -> RecordId:
    topic, *numbers = found.values()
    epoch, partition, offset = (int(str(number)) for number in numbers)
    return RecordId(topic=str(topic), epoch=epoch, partition=partition, offset=offset)
