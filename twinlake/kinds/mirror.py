"""Owns the pattern of a mirrored table: what a Latest of its change topic says, but for the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twinlake.base import quote
from twinlake.kinds.barriers import Snapshot, SourcePlace
from twinlake.topics import change_data

_GONE = "change_is_delete"


def mirror(database: str, *, keys: Sequence[str], values: Sequence[str]) -> dict[str, Any]:
    """The arguments of `Latest(name=..., inputs=..., **mirror(...))` over a topic whose contract says
    `changeData`; keys and values are columns of the mirrored table.

    It follows the log; complete snapshots and truncates hide what came before them.
    """
    of, last = change_data.whole_snapshot(database)
    log, at = change_data.place(database)
    named = {name: quote.name(name) for name in (*keys, *values)}
    return {
        "columns": {
            **{name: f"IF(op = 'd', before.{named[name]}, after.{named[name]})" for name in keys},
            **{name: f"after.{named[name]}" for name in values},
            _GONE: "op = 'd'",
        },
        "keys": tuple(keys),
        "values": tuple(values),
        "delete_when": _GONE,
        "snapshot": Snapshot(of=of, last=last),
        "truncate_when": "op = 't'",
        "source_place": SourcePlace(of=log, at=at),
    }
