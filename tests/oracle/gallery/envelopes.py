"""What of a database's change topic counts, by the envelopes alone; plain ones, as the gallery's are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

_UNKNOWN = "__debezium_unavailable_value"
_NEEDED = {"r": "after", "c": "after", "u": "after", "d": "before", "t": "op"}
_POSITION = ("lsn", "txId", "file", "pos", "row")


def time(event: dict[str, Any]) -> datetime:
    """When the database made the change."""
    ms = event["source"]["ts_ms"]
    return datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)


def counts(event: dict[str, Any]) -> bool:
    """Whether it is a change with all that a change must say."""
    op, source = event["op"], event["source"]
    if op not in _NEEDED or source is None or source["ts_ms"] is None or source["snapshot"] is None:
        return False
    if any(source.get(name, "") is None for name in _POSITION if name != "txId"):
        return False
    rows = [row for row in (event["before"], event["after"]) if row is not None]
    return event[_NEEDED[op]] is not None and not any(_UNKNOWN in row.values() for row in rows)


def identity(event: dict[str, Any], key: bytes | None) -> str:
    """What only a redelivery has in common with an envelope."""
    source = event["source"]
    place = [source.get(name) for name in (*_POSITION, "snapshot")]
    sort = "change" if event["op"] in "cud" else event["op"]
    return repr((sort, place, key, event["before"], event["after"]))
