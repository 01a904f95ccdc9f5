"""Standing: which release of a lake is live, and how far its logs and versions are, by its files alone."""

from __future__ import annotations

import json
from typing import Any

from twinlake.base.location import Location
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.version import stored_versions
from twinlake.lake.delta import delta
from twinlake.lake.delta.table_state import TableState
from twinlake.lake.storage import store

_AGAIN_S = 30.0
"""Files that are cleaned up in this moment are looked for again."""


def standing(lake: Location) -> dict[str, Any]:
    """`release` with its `number` and `tables`, the newest that somebody has made (None before the first),
    `logs` with the newest batch of each
    topic, `positions` by version, `stalled` with the versions of which the lake server said so last.

    Whether or not anybody writes to it, and in every format so far.
    """
    return wait_for(
        "the lake's tables to be read", lambda: _standing(lake), _AGAIN_S, every_s=0.5,
        unready=(FileNotFoundError,),
    )  # fmt: skip


def _standing(lake: Location) -> dict[str, Any]:
    releases = release_log.releases(lake)
    live = next((one for one in reversed(releases) if one.approved_by != release_log.NOBODY), None)
    return {
        "release": live and {"number": live.number, "tables": dict(live.tables)},
        "logs": {topic: batch for topic in sorted(store.names(lake / "logs"))
                 if (batch := _batch(lake / "logs" / topic)) is not None},
        "positions": {
            str(version): position
            for version in stored_versions(lake)
            if version.state == "living" and (position := _position(version.path(lake))) is not None
        },
        "stalled": _stalled(lake),
    }  # fmt: skip


def _batch(log: Location) -> int | None:
    if delta.newest_version(log) < 0:
        return None
    state = TableState(log, appends=False)
    return state.transaction(f"log:{state.id}")


def _position(table: Location) -> dict[str, int] | None:
    if delta.newest_version(table) < 0:  # of a kind that stores nothing
        return None
    found = delta.newest_metadata(table, lambda metadata: metadata.get("kind") in ("step", "close"))
    return dict(found["position"]) if found else None


def _stalled(lake: Location) -> list[str]:
    try:
        found = json.loads(store.read_text(lake / "report.json"))["stalled"]
        return [f"{one['table']} {one['version']}" for one in found]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return []
