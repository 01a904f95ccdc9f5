"""Judges records over which the contract was mended, and whose quarantine was then judged again."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from fastavro import parse_schema

from tests.oracle.judge import RULES, Judged, Rules, check_event, decode, physical, repeats
from tests.oracle.topic import Records


@dataclass(frozen=True, kw_only=True)
class Mended:
    """The contract's new rules; the old ones judged each partition's records before offset `since`.

    `replayed` is where partitions ended when what was refused of them was judged again. Lateness and the
    horizon of ids must be as before.
    """

    rules: Rules
    since: dict[int, int]
    replayed: dict[int, int] = field(default_factory=dict)


def judge_mended(records: Records, schemas: dict[int, dict[str, Any]], mended: Mended) -> Judged:
    """A verdict for every record, the latest where there are two.

    Judged again are refused records, but no duplicates, in the order of their record ids; one is a duplicate
    if its id is on a valid record within the horizon, before it or after.
    """
    readers = {schema_id: parse_schema(physical(schema)) for schema_id, schema in schemas.items()}
    judged = Judged()
    events: dict[int, tuple[Any, ...]] = {}
    sound: list[int] = []
    for row, value in enumerate(records.values):
        event, reasons = decode(value, readers)
        if event is None:
            judged.refused[row] = ("invalid", reasons)
            continue
        events[row] = event
        first = records.offsets[row] < mended.since.get(records.partitions[row], 0)
        verdict, reasons = check_event(event, records.timestamps_ms[row], RULES if first else mended.rules)
        if verdict == "valid":
            sound.append(row)
        else:
            judged.refused[row] = (verdict, reasons)
    ends = [mended.replayed.get(partition, 0) for partition in records.partitions]
    before = {row for row, end in enumerate(ends) if records.offsets[row] < end}
    again = repeats([(row, events[row]) for row in sound if row in before], records)
    seen: dict[str, list[int]] = defaultdict(list)  # by id, the times of valid records

    def put(row: int, is_repeated: bool) -> None:
        if is_repeated:
            judged.refused[row] = ("duplicate", ["already_seen"])
        else:
            judged.refused.pop(row, None)
            judged.rows.append(row)
            seen[events[row][0]].append(records.timestamps_ms[row])

    def near(row: int, back_only: bool) -> bool:
        away = (records.timestamps_ms[row] - at for at in seen[events[row][0]])
        return any((one if back_only else abs(one)) <= RULES.unique_within_ms for one in away)

    for row in sound:
        if row in before:
            put(row, row in again)
    refused = [row for row in before if judged.refused.get(row, ("valid", []))[0] in ("invalid", "too_late")]
    for row in sorted(refused, key=lambda row: (records.partitions[row], records.offsets[row])):
        if row in events:
            verdict, reasons = check_event(events[row], records.timestamps_ms[row], mended.rules)
            if verdict == "valid":
                put(row, near(row, back_only=False))
            else:
                judged.refused[row] = (verdict, reasons)
    stamps, partitions, offsets = records.timestamps_ms, records.partitions, records.offsets
    later = [row for row in sound if row not in before]
    for row in sorted(later, key=lambda row: (stamps[row], partitions[row], offsets[row])):
        put(row, near(row, back_only=True))
    for row in judged.rows:
        judged.late += records.timestamps_ms[row] - events[row][6] > RULES.late_after_ms
        for column, part in zip(judged.columns.values(), events[row], strict=True):
            column.append(part)
    return judged
