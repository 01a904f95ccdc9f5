"""One asset per table, with an event when it is certified, released or rolled back: DAGs are scheduled by it.

Which tables there are is known when a task runs and not when DAGs are parsed, so their tasks name an alias.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from airflow.sdk import Asset, AssetAlias, get_current_context

SERVED = AssetAlias("twinlake_tables")
"""An outlet of every task that calls `announce`."""


def asset_of(table: str) -> Asset:
    """What a DAG is scheduled by."""
    return Asset(f"twinlake://tables/{table}")


def announce(
    event: Literal["certified", "released", "rolled back"], tables: Iterable[str], **facts: Any
) -> None:
    """An event of each table's asset, kept where the task succeeds."""
    events = get_current_context()["outlet_events"][SERVED]
    for table in tables:
        events.add(asset_of(table), extra={"event": event, **facts})
