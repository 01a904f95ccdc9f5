"""What Airflow knows of tables: an asset each, and the names that forms suggest.

An asset has an event when its table is certified, released or rolled back: DAGs are scheduled by it. Which
tables there are is known when a task runs and not when DAGs are parsed, so their tasks name an alias. Names
of tables and topics are in an Airflow variable that tasks keep up to date: to parse the DAGs asks the lake
server for nothing. A name that is too new to be suggested is accepted too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from airflow.sdk import Asset, AssetAlias, Variable, get_current_context
from airflow.sdk.exceptions import AirflowRuntimeError

VARIABLE = "twinlake_names"
TABLES, TOPICS = "tables", "topics"
SERVED = AssetAlias("twinlake_tables")
"""An outlet of every task that calls `announce`."""

log = logging.getLogger("airflow.task.twinlake")


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


def suggestions(of: str) -> list[str]:
    """The names that were seen last; none before the first task has asked the lake server."""
    found = _known().get(of, [])
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def remember(status: Mapping[str, Any]) -> None:
    """What the lake server has said of itself, for the forms."""
    names = {
        TABLES: sorted(table["name"] for table in status["tables"] if table["windows"]),
        TOPICS: sorted(topic["name"] for topic in status["topics"]),
    }
    try:
        if _known() != names:
            Variable.set(VARIABLE, names, "what Twinlake's forms suggest", serialize_json=True)
    except AirflowRuntimeError as error:  # nobody may write variables here: the work itself needs none
        log.warning("the names of tables and topics are not suggested by forms: %s", error)


def _known() -> dict[str, Any]:
    known = Variable.get(VARIABLE, default={}, deserialize_json=True)
    return known if isinstance(known, dict) else {}
